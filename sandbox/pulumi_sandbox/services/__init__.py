"""The processes the sandbox starts, so that a program meets real servers."""
