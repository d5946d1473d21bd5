"""`credfleet config`: a stack's configuration, judged without running the program."""
