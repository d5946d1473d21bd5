"""State of the stack, as the running program can read it from its engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import pulumi
from pulumi.output import Unknown
from pulumi.runtime import invoke

READ: Final = "pulumi:pulumi:readStackResourceOutputs"
_READ_OUTPUTS: Final = "pulumi:pulumi:readStackOutputs"


def this_stack() -> str:
    """Return the full name of the running stack."""
    return f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"


def recall_resources() -> Mapping[str, Mapping[str, Any]]:
    """Return URN → `type` and `outputs` of the state; empty if no update has completed.

    The CLI would panic if asked for resources of a stack without a state.
    """
    try:
        stack: Any = invoke(_READ_OUTPUTS, {"name": this_stack()}).value
        answer: Any = invoke(READ, {"stackName": this_stack()}).value if (stack or {}).get("outputs") else {}
    except Exception:  # reviews and tests have no backend
        return {}
    return resources_in(answer)


def resources_in(answer: Any) -> Mapping[str, Mapping[str, Any]]:
    """Return URN → `type` and `outputs`, without values that a failed update left unknown."""
    return _known((answer or {}).get("outputs") or {})


def _known(value: Any) -> Any:
    match value:
        case dict():
            items = cast("dict[str, Any]", value).items()
            return {key: _known(item) for key, item in items if not isinstance(item, Unknown)}
        case list():
            return [_known(item) for item in cast("list[Any]", value) if not isinstance(item, Unknown)]
        case _:
            return value
