"""The `credfleet` command, which inspects fleets and calls the same cores as the program."""
