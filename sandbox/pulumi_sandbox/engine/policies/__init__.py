"""Policy packs: started, configured, and asked to judge resources and stacks."""
