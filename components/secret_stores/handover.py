"""A read that changes its back end: its Secret goes from hand to hand, and is there all the time.

From ESO to the direct back end: the ExternalSecret is told to own its target no more, the target loses the
reference by which it would go with it, and only then the update removes the ExternalSecret. The other way:
the direct back end leaves its target where an ExternalSecret of the same name is to make it
(`externalsecret_controller.go` of ESO 2.9.0). Everything here raises CredfleetError.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from components.secret_stores.direct import StackTarget
from components.secret_stores.eso_states import path_of
from components.secret_stores.eso_targets import maker, release
from components.secret_stores.reading import Reading, open_secrets

_VERSION: Final = "external-secrets.io/v1"
_KIND: Final = "ExternalSecret"
_ATTEMPTS: Final = 5
_STACKS: Final = "pulumi"
"""How the names begin under which stacks write objects."""


def is_handed_over(reading: Reading, target: StackTarget) -> bool:
    """Whether the ExternalSecret of this read made its target, for a stack."""
    secret = target.stack_cluster.mark(reading.target.namespace, reading.target.name)
    if secret is None or maker(secret) != reading.read.name:
        return False
    found = _external_secret(reading, target)
    managers = () if found is None else found["metadata"].get("managedFields") or ()
    return found is None or any(str(each.get("manager")).startswith(_STACKS) for each in managers)


def take_over(reading: Reading, target: StackTarget) -> None:
    """Take the target from the ExternalSecret of this read, if it has it."""
    if not is_handed_over(reading, target):
        return
    if _external_secret(reading, target) is not None:
        orphan = {"spec": {"target": {"creationPolicy": "Orphan"}}}
        target.stack_cluster.merge(_path(reading), reading.read.title, orphan)
    secrets = open_secrets(target)
    for _ in range(_ATTEMPTS):
        secret = secrets.get(reading.target)
        if secret is None or maker(secret) is None:
            return
        metadata = release(secret["metadata"], reading.body({})["metadata"]["annotations"])
        if secrets.replace({**secret, "metadata": metadata}) is not None:
            return


def is_left_to_eso(reading: Reading, target: StackTarget) -> bool:
    """Whether an ExternalSecret of the name of this read is there to make its target from now on."""
    found = _external_secret(reading, target)
    if found is None or found["metadata"].get("deletionTimestamp"):
        return False
    return (found["spec"].get("target") or {}).get("name", reading.read.name) == reading.target.name


def _external_secret(reading: Reading, target: StackTarget) -> Mapping[str, Any] | None:
    cluster = target.stack_cluster
    if _KIND not in cluster.served(_VERSION):
        return None
    return cluster.found(_path(reading), reading.read.title)


def _path(reading: Reading) -> str:
    return path_of(_VERSION, _KIND, reading.read.namespace, reading.read.name)
