"""`python -m credfleet`."""

from operations.main import main

if __name__ == "__main__":
    main()
