"""The sandbox's Kubernetes provider: any kind, by server-side apply, as pulumi-kubernetes 4.34 does it."""
