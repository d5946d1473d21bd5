"""`credfleet sandbox`: runs a stack on the project's own API server, without a cloud."""
