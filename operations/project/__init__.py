"""`credfleet init` and `credfleet add`: a project of one's own, and what its stacks' files say."""
