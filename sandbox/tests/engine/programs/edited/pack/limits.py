"""What a policy imports."""

WORD = "first"
