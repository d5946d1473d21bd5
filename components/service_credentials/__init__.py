"""User-provided services: one credentials object, its source Secret, and the bindings derived from it."""
