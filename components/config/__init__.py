"""Basis of all configuration models: base model, field types, documents, places."""
