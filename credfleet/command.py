"""The `credfleet` command."""

from operations.main import main

__all__ = ["main"]
