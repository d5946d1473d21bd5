"""A stack's configuration: `stack.py` reads it whole, `section.py` is what all rooms build theirs on."""
