"""Pull secrets: requirements for a cluster's pull secret, and its names in GCP and in the cluster."""
