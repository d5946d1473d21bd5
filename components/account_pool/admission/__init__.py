"""Who may write what in a pool: the transitions that the API server allows, and the roles they need."""
