"""Resource providers for the embedded engine."""
