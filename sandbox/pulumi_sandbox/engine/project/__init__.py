"""What the files of a project and a stack say, and how their secrets are encrypted."""
