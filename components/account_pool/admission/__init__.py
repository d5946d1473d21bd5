"""Admission of writes in a pool: the transitions that the API server allows, and the required roles."""
