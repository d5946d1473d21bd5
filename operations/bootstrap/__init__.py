"""`credfleet bootstrap`: what the identities of a stack's workflows need, and whether they have it."""
