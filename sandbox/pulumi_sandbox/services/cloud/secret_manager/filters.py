"""The filter of a list: `labels.team=a AND NOT name:old`, as Google documents it, without parentheses."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from pulumi_sandbox.services.cloud.secret_manager.refusals import invalid

Attributes: TypeAlias = Mapping[str, str]
"""What a filter may ask for: `name`, `labels.KEY`, `annotations.KEY`, and of a version `state`."""

Test: TypeAlias = Callable[[Attributes], bool]

_WORD: Final = re.compile(
    r"""\s*(?:(?P<junction>AND|OR)\b
      | (?P<negation>NOT\s+|-)?(?P<field>[A-Za-z_]+(?:\.[\w-]+)?)
        \s*(?P<operator>!=|=|:)\s*(?P<value>"[^"]*"|[^\s"()]+)
      )""",
    re.VERBOSE,
)


def read_filter(text: str) -> Test:
    """Read a filter; an empty one lets everything pass. OR binds closer than AND, which may be left out.

    `=` compares whole values (a name's last part counts as the whole); `:` looks for a part, `:*` for any.

    Raises Refusal INVALID_ARGUMENT.
    """
    groups: list[list[Test]] = []
    joined_by_or = False
    for junction, test in _words(text):
        if test is None:
            joined_by_or = junction == "OR"
        elif joined_by_or and groups:
            groups[-1].append(test)
            joined_by_or = False
        else:
            groups.append([test])
    return lambda attributes: all(any(test(attributes) for test in group) for group in groups)


def _words(text: str) -> Iterator[tuple[str | None, Test | None]]:
    position = 0
    while text[position:].strip():
        word = _WORD.match(text, position)
        if word is None:
            raise invalid(f"The filter is not understood from [{text[position:].strip()}] on.")
        position = word.end()
        yield word["junction"], None if word["junction"] else _test(word)


def _test(word: re.Match[str]) -> Test:
    field, operator, value = word["field"], word["operator"], word["value"].strip('"')
    if field not in ("name", "state") and not field.startswith(("labels.", "annotations.")):
        raise invalid(f"The filter names [{field}], by which this stand-in cannot filter.")
    wanted = (operator == "!=") is not bool(word["negation"])

    def test(attributes: Attributes) -> bool:
        found = attributes.get(field)
        if operator == ":":
            hit = found is not None and (value == "*" or value.lower() in found.lower())
        else:
            hit = found is not None and (found == value or (field == "name" and found.endswith(f"/{value}")))
        return hit is not wanted

    return test
