"""`credfleet init`: creates the user's own project."""
