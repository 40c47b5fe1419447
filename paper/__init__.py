"""The paper's experiments: settings as data, the jobs that compute missing results, tables and figures."""
