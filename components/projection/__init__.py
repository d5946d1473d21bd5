"""Projection: moves the bytes of a Secret inside the cluster, and tells only where they are."""
