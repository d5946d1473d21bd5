"""`credfleet pull-secret`: pull secrets judged, and clusters asked about."""
