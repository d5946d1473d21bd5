"""The processes that the sandbox starts, so that a program uses real servers."""
