"""The protocol of the pool: what its objects mean, what is decided, and the calls that carry it out."""
