"""Tables of cases: the name of each, where it has one, is its test's id."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

Test = TypeVar("Test", bound=Callable[..., object])


def cases(arguments: str, table: Mapping[str, object] | Sequence[object]) -> pytest.MarkDecorator:
    """Return the mark that runs a test once for each row: value, or values, by case where they have names."""
    if isinstance(table, Mapping):
        return pytest.mark.parametrize(arguments, [*table.values()], ids=[*table])
    return pytest.mark.parametrize(arguments, table)


def tabled(arguments: str) -> Callable[[Test], Test]:
    """Return the mark that runs a test once for each row of the table that bears its name."""
    return lambda test: cases(arguments, table(test.__globals__["__file__"], test.__name__))(test)


def table(test_file: str, test: str) -> Any:
    """Return the table of a test, which is in the YAML beside its file, under its name."""
    return _tables(Path(test_file).with_suffix(".yaml"))[test]


@cache
def _tables(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))
