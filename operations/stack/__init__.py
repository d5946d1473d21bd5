"""A stack at rest: what its project's file, its own file and its state in a backend of files say."""
