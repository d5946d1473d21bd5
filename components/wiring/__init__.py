"""Wiring from the configuration to the components, one module per component."""
