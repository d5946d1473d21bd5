"""`credfleet stores`: whose credentials secret stores read."""
