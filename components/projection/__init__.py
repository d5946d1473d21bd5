"""Projection: copies the data of a Secret inside the cluster, and returns only references."""
