"""`python -m credfleet`, and the `credfleet` command."""

from operations.main import main

if __name__ == "__main__":
    main()
