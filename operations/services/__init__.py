"""`credfleet services`: what the credentials of user-provided services become."""
