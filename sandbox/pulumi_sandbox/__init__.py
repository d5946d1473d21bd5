"""The sandbox runs any Pulumi program in Python on a real API server."""
