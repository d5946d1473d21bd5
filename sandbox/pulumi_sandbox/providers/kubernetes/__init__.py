"""The sandbox's Kubernetes provider: any kind, by server-side apply, like pulumi-kubernetes 4.34."""
