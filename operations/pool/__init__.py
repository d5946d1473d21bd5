"""`credfleet pool` and `credfleet doctor`: a live pool seen, claimed from, and maintained."""
