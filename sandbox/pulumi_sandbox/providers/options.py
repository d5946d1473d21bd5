"""The options of a provider, as the engine hands them over: judged one by one, and what a text stands for."""

import json
from collections.abc import Callable, Mapping

from pulumi_sandbox.protocol.values import Properties, Unknown, Value
from pulumi_sandbox.providers.contract import Problem


def option_problems(
    config: Properties, reason: Callable[[str, Value], str], required: Mapping[str, str]
) -> list[Problem]:
    """List what is wrong with the options, unknown ones passed over.

    reason: what is wrong with an option that is given, empty for nothing. required: option → what to say when
    it is not given.
    """
    given = {key: value for key, value in config.items() if value not in (None, "")}
    found = [
        Problem(key, said)
        for key, value in sorted(given.items())
        if not isinstance(value, Unknown) and (said := reason(key, value))
    ]
    return found + [Problem(key, said) for key, said in required.items() if key not in given]


def option_value(given: Value) -> Value:
    """Return the value a text stands for."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except ValueError:
        return given
