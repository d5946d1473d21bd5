"""What becomes of a stack: each module is named for what it does to a resource or to a deployment."""
