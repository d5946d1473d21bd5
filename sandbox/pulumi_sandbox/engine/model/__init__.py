"""What a deployment speaks of: goals, resources and their differences, and the events it tells."""
