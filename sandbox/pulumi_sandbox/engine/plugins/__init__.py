"""The processes a deployment starts, and how it speaks with providers."""
