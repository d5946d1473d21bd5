"""Configuration of a whole stack: its file, the files of its tenants, and their problems."""
