"""`credfleet init`: a project of one's own."""
