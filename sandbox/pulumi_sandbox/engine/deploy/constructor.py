"""The code that declares an imported resource, for a program in Python."""

import json
import re
import subprocess
from pathlib import Path
from typing import Final

from pulumi_sandbox.engine.deploy.options import Import
from pulumi_sandbox.engine.model.resource import Resource, Snapshot
from pulumi_sandbox.engine.plugins import constructor_host
from pulumi_sandbox.engine.workspace import StackAtRest
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import signatures, urns
from pulumi_sandbox.protocol.tagged import tag
from pulumi_sandbox.protocol.values import Archive, Asset, Json, ResourceReference, Secret, Value

_HOST: Final = Path(constructor_host.__file__)
_SECONDS: Final = 120


def constructor_of(imported: Import, stack: StackAtRest, state: Snapshot) -> str:
    """Return the code that declares what was imported, with the inputs that it has in the state.

    Names are those of the SDK in the program's environment. A secret is read from the stack's configuration,
    from a key that is named after resource and property.
    Raises SandboxError `code-unavailable`, where none can be written.
    """
    project = stack.project
    urn = imported.urn(stack.stack, project.name)
    record = next(each for each in state.resources if each.urn == urn and not each.delete)
    if project.runtime != "python":
        raise _unavailable(record, f"it is written for programs in Python only, not in {project.runtime}")
    if _holds_references(record.inputs):
        raise _unavailable(record, "it holds an asset, or another resource")
    held = {urn: variable for variable, urn in imported.variables.items()}
    above = {"parent": imported.parent_urn, "provider": imported.provider_urn}
    options = {option: held[urn] for option, urn in above.items() if urn and not _is_root(urn)}

    def taken_from_configuration(secret: Secret, place: str) -> Json:
        key = re.sub(r"[^A-Za-z0-9_.]+", "-", f"{imported.name}{place}")
        return {signatures.KEY: signatures.SECRET, "key": key, "isText": isinstance(secret.value, str)}

    asked = {
        "type": record.type,
        "name": imported.name,
        "inputs": tag(record.inputs, taken_from_configuration),
        "options": {**options, **({"protect": "True"} if imported.protect else {})},
    }
    try:
        ran = subprocess.run(
            [str(project.python), "-P", str(_HOST)],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        raise _unavailable(record, f"{project.python} did not answer") from None
    if ran.returncode:
        raise _unavailable(record, ran.stderr.strip().splitlines()[-1] if ran.stderr else "its host ended")
    return ran.stdout


def how_to_use(imported: Import) -> str:
    """Return what to do with the code."""
    protected = (
        " To delete it one day, remove `protect` from it and update first." if imported.protect else ""
    )
    return f"Copy this into the program, or the next update takes it for what is no longer wanted.{protected}"


def _is_root(urn: str) -> bool:
    return urns.parse(urn).type == urns.ROOT_STACK_TYPE


def _holds_references(value: Value) -> bool:
    match value:
        case dict():
            return any(map(_holds_references, value.values()))
        case list():
            return any(map(_holds_references, value))
        case Secret():
            return _holds_references(value.value)
        case _:
            return isinstance(value, Asset | Archive | ResourceReference)


def _unavailable(record: Resource, cause: str) -> SandboxError:
    return SandboxError(
        code="code-unavailable",
        place=f"code for {record.urn}",
        cause=cause,
        mend="declare it by hand with the inputs that the state has, and the next update changes nothing",
    )
