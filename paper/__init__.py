"""The paper's experiments as data, what is missing done, and every table and figure written."""
