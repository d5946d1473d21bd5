"""Pull secrets: what a cluster's pull secret must be, and what it is called in GCP and in the cluster."""
