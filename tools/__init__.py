"""Programs that make files of the packages."""
