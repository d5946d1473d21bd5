"""Clients of the direct back end: one small module for each kind of provider."""
