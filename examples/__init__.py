"""Problems of one's own, to copy from."""
