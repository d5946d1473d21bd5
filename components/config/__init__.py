"""What the configuration of every component is built on: models, types of fields, documents, places."""
