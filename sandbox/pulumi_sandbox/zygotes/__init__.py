"""Processes of a deployment that are forked from one that has imported all they need (Linux)."""
