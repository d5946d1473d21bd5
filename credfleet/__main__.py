"""`python -m credfleet`, and what the `credfleet` command is where it is forked."""

from operations.main import main

if __name__ == "__main__":
    main()
