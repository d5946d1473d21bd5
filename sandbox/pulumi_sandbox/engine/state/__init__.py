"""The state of a stack: its records on disk and while a deployment runs, its lock, its rules."""
