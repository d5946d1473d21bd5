"""Components of a stack, one package per system, and their shared modules."""
