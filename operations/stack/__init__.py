"""A stack at rest: its project's file, its own file and its state in a file backend."""
