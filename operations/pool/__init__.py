"""`credfleet pool` and `credfleet doctor`: inspect, claim from and maintain a live pool."""
