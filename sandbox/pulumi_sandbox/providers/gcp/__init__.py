"""The sandbox's Google Cloud provider: Secret Manager, as pulumi-gcp 10.2 does it."""
