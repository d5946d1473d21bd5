"""Capabilities of External Secrets Operator (ESO) providers, and their requirements on a spec, by kind.

`eso_providers.json` is derived from the code of the ESO version it names; `tests/witness/test_eso.py` checks
it against that code. Keyed by embedded block; contains nothing about kinds of a stack's own code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

from components.errors import Problem
from components.importing import IMPORT_LOCK


@cache
def read_table(name: str) -> Mapping[str, Any]:
    """Return a JSON table about ESO from this folder."""
    return json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


def facts_of(key: str) -> Mapping[str, Any]:
    """Return the facts about a kind from the file: name, can, logins, labels and more."""
    return read_table("eso_providers.json")["kinds"].get(key, {})


class Scope(StrEnum):
    """When a requirement applies; the file explains each value."""

    ALWAYS = "always"
    ANY = ""
    LOGIN = "login"
    OWN = "own"
    EMBEDDED = "as it stands"
    OWN_EMBEDDED = "own as it stands"
    PERHAPS = "perhaps"


WRITTEN: Final = (Scope.ANY, Scope.LOGIN, Scope.OWN)
"""Scopes in which a requirement applies to what this program writes for ESO."""


def unmet(key: str, spec: Mapping[str, Any], *scopes: Scope) -> Iterator[Problem]:
    """Yield ESO's requirements that a spec does not meet; the place is the path in the spec.

    `spec`: as in a document. As in Go, empty strings and false count as absent.
    """
    given = _without_zeros(spec)
    for each in facts_of(key).get("demands", ()):
        if each.get("when", Scope.ANY) in scopes:
            for where, part in _parts(given, each["at"].split(".") if each["at"] else [], ""):
                if cel_program(each["rule"]).eval(data={"self": part}).value() is not True:
                    yield Problem(each.get("place", where), each["problem"], each["fix"])


def _parts(value: Any, steps: list[str], path: str) -> Iterator[tuple[str, Any]]:
    """Yield each part of a spec at a path, and list items individually."""
    if isinstance(value, list):
        for index, each in enumerate(cast("list[Any]", value)):
            yield from _parts(each, steps, f"{path}[{index}]")
    elif not steps:
        yield path, value
    elif isinstance(value, dict) and steps[0] in value:
        yield from _parts(value[steps[0]], steps[1:], f"{path}.{steps[0]}" if path else steps[0])


def _without_zeros(value: Any) -> Any:
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        given = {key: each for key, each in items if each is not None and each is not False}
        return {key: _without_zeros(each) for key, each in given.items() if each not in ("", [])}
    return [*map(_without_zeros, cast("list[Any]", value))] if isinstance(value, list) else value


@cache
def cel_program(rule: str) -> Any:
    """Return a compiled CEL program; evaluation errors are values that are not True."""
    with IMPORT_LOCK:
        from cel_expr_python import cel

    return cel.NewEnv(variables={"self": cel.Type.DYN}).compile(rule)
