"""What the stack's own state remembers of a pool's accounts that the cluster forgot.

Asked only if a member that was declared before has no Secret: of a stack without a state yet, the CLI has
nothing to read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pulumi.runtime import invoke_async

from components.recalled import READ, resources_in, this_stack


@dataclass(frozen=True, slots=True)
class Remembered:
    """made: the members that had Secrets, None where the state does not tell. owners: Secret → tenant."""

    made: frozenset[str] | None = None
    owners: Mapping[str, str] = field(default_factory=dict[str, str])

    def was_made(self, member: str) -> bool:
        """Whether a member had its Secret; in doubt it had."""
        return self.made is None or member in self.made or member in self.owners


async def recall(namespace: str, noted: Sequence[str]) -> Remembered:
    """Read the state of the running stack. noted: members whose Secrets an earlier update saw."""
    try:
        answer = await invoke_async(READ, {"stackName": this_stack()})
    except Exception:  # a review, or a test, has no backend: nothing is known, so all is taken for made
        return Remembered()
    of_type: dict[str, list[Mapping[str, Any]]] = {}
    for one in resources_in(answer).values():
        outputs = one.get("outputs") or {}
        if outputs.get("namespace") == namespace:
            of_type.setdefault(str(one.get("type")).rpartition(":")[2], []).append(outputs)
    claims = [
        one for one in of_type.get("AccountClaim", []) if one.get("secretName") and not one.get("shared")
    ]
    made = [name for pool in of_type.get("AccountPool", ()) for name in pool.get("members") or ()]
    is_unknown = not made and not noted and "PoolSeal" in of_type
    return Remembered(
        None if is_unknown else frozenset({*made, *noted}),
        {str(one["secretName"]): str(one["tenant"]) for one in claims},
    )
