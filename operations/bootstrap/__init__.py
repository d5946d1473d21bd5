"""`credfleet bootstrap`: the rights that a stack's workflow identities need, and whether they have them."""
