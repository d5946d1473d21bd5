"""`credfleet sandbox`: a stack run on the project's own API server, without cloud and CLI."""
