"""What a stack declares: one room per system, and the words they share."""
