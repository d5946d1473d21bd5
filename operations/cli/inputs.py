"""A file named on the command line, byte for byte; `-` is standard input."""

from pathlib import Path
from typing import Final

from components.errors import CredfleetError

STANDARD_INPUT: Final = "-"
_STANDARD_INPUT_NUMBER: Final = 0


def place_of(file: str) -> str:
    """Return how errors name it."""
    return "standard input" if file == STANDARD_INPUT else file


def read_bytes(file: str, holds: str) -> bytes:
    """Return all of it. holds: what belongs into it. Raises CredfleetError, code `file-unreadable`."""
    try:
        if file != STANDARD_INPUT:
            return Path(file).read_bytes()
        with open(_STANDARD_INPUT_NUMBER, "rb", closefd=False) as stream:
            return stream.read()
    except OSError as error:
        raise CredfleetError(
            code="file-unreadable",
            place=place_of(file),
            problem=f"it cannot be read ({error.strerror}), so nothing is known of it",
            fix=f"name a file with {holds}, or - for standard input",
        ) from error
