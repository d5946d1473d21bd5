"""What an earlier version left beside the state of a stack.

It wrote what a run did to a large state into `STACK.json.steps` beside it, a line for each
save: the records that were new, by number, and in which order all stood. A record's number is its place in
the state, behind those the places of its pending operations' records, then one after the other. The first
line names the state that the others follow, by its digest; a line that was cut off says nothing.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pulumi_sandbox import files
from pulumi_sandbox.locks import exclusive

from components.errors import CredfleetError


def take_up_steps(state: Path) -> None:
    """Fold into a state what an earlier version left beside it, if anything; what was there stays as `.bak`.

    A killed call is ended by the next.
    Raises CredfleetError `state-unreadable`; `state-invalid`, where another tool has changed the state since.
    """
    beside = state.with_name(f"{state.name}.steps")
    if not beside.exists():
        return
    lock = state.parents[2] / "locks" / "sandbox" / state.parent.name / state.stem
    with exclusive(lock):  # which a run of that version holds
        text, steps = state.read_text(encoding="utf-8"), beside.read_text(encoding="utf-8")
        try:
            file = json.loads(text)
            found = _followed(steps, text, file["checkpoint"]["latest"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise CredfleetError(
                code="state-unreadable",
                place=str(beside),
                problem="a run that was killed left it, and it or its state is none",
                fix=f"restore both; or delete this file and run refresh, with {state.name}.bak as the state",
            ) from None
        if found is None:
            raise CredfleetError(
                code="state-invalid",
                place=str(beside),
                problem="a run that was killed left it, and another tool has changed the state since",
                fix=f"restore {state.name} as that run left it; or delete this file and run refresh:"
                " what it alone records is no longer known then",
            )
        if found is not file["checkpoint"]["latest"]:
            file["checkpoint"]["latest"] = found
            folded = json.dumps(file, separators=(",", ":"), ensure_ascii=False)
            files.replace(state.with_name(f"{state.name}.bak"), text)
            files.replace(beside, f"{steps}\n{json.dumps({'in': _digest(folded)})}\n")
            files.replace(state, folded)
            state.with_name(f"{state.name}.attrs").unlink(missing_ok=True)
        beside.unlink()


def _followed(steps: str, state: str, deployment: dict[str, Any]) -> dict[str, Any] | None:
    """Return a deployment as the steps behind its state left it; None where they are those of another state.

    Raises KeyError, TypeError or AttributeError for what is no file of steps, or lacks a line.
    """
    read = [line for line in map(_read, steps.split("\n")) if line is not None]
    if not read:
        return deployment
    head, *steps_read = read
    known = _digest(state)
    if any(each.get("in") == known for each in steps_read):
        return deployment
    if head["follows"] != known:
        return None
    pending = deployment.get("pending_operations") or []
    records = dict(enumerate([*(deployment.get("resources") or []), *(each["resource"] for each in pending)]))
    saved = [each for each in steps_read if "in" not in each]
    for step in saved:
        records |= {int(number): record for number, record in step["new"].items()}
    if not saved:
        return deployment
    last = saved[-1]
    return {
        **deployment,
        "resources": [records[number] for first, end in last["order"] for number in range(first, end)],
        "pending_operations": [
            {"resource": records[number], "type": type_} for number, type_ in last["pending"]
        ],
    }


def _read(line: str) -> dict[str, Any] | None:
    try:
        return json.loads(line)
    except ValueError:  # cut off: what is in it was never told to be written
        return None


def _digest(text: str) -> str:
    """Return by what a state is known."""
    return hashlib.sha256(text.encode()).hexdigest()
