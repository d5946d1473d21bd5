"""The `credfleet` command: reads a fleet, or runs the cores that the program runs."""
