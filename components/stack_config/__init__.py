"""The configuration of a stack as a whole: its file, the files of its tenants, what is wrong with them."""
