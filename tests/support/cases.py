"""Tables of cases: the name of each is its test's id."""

from collections.abc import Mapping

import pytest


def cases(arguments: str, table: Mapping[str, object]) -> pytest.MarkDecorator:
    """Return the mark that runs a test once for each row: case → value, or tuple of values."""
    return pytest.mark.parametrize(arguments, table.values(), ids=table)
