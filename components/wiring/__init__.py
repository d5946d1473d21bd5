"""Wiring: from the words of the configuration to what the rooms declare, one module per room."""
