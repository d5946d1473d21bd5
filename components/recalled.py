"""What the stack's own state has, as the running program may ask its engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pulumi
from pulumi.runtime import invoke

READ: Final = "pulumi:pulumi:readStackResourceOutputs"
_READ_OUTPUTS: Final = "pulumi:pulumi:readStackOutputs"


def this_stack() -> str:
    """Return the name of the running stack, in full."""
    return f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"


def recall_resources() -> Mapping[str, Mapping[str, Any]]:
    """Return URN → `type` and `outputs` of all in the state; nothing where no update has come to its end.

    Asked for the resources of a stack without a state, the CLI would panic.
    """
    try:
        stack: Any = invoke(_READ_OUTPUTS, {"name": this_stack()}).value
        answer: Any = invoke(READ, {"stackName": this_stack()}).value if (stack or {}).get("outputs") else {}
    except Exception:  # a review, or a test, has no backend
        return {}
    return (answer or {}).get("outputs") or {}
