"""`credfleet config`: checks a stack's configuration without running the program."""
