"""`credfleet pull-secret`: checks pull secrets, and reads the state of their clusters."""
