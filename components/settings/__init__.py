"""A stack's configuration."""

from components.settings.stack import Settings

__all__ = ["Settings"]
