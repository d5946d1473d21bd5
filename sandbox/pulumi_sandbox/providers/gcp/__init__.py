"""The sandbox's Google Cloud provider: Secret Manager, like pulumi-gcp 10.2."""
