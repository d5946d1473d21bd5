"""`credfleet fleet`: all stacks of a project together."""
