"""Protocol of the pool: the meaning of its objects, the decisions, and the calls that carry them out."""
