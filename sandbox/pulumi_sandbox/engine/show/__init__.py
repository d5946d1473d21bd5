"""How a deployment is shown: to a person at a terminal, in a log, or to a program."""
