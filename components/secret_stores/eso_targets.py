"""Whose the Secret is that a read wants, where External Secrets Operator (ESO) may be its maker.

ESO takes any Secret of the name over: it drops the keys it does not know and owns the rest, which goes with
the read (`applyOwnership` of ESO 2.9.0). So one that is there already has to be the read's
own: made by its ExternalSecret, or by the direct back end for the same read, which hands it over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

from components.errors import Problem
from components.projection.model import PROJECTED_BY
from components.secret_stores.conditions import NAME_LABEL, allows
from components.secret_stores.model import ClusterStoreSpec

_GROUP: Final = "external-secrets.io/"
_KIND: Final = "ExternalSecret"

MARKS: Final = ("reconcile.external-secrets.io/created-by", "reconcile.external-secrets.io/managed")
"""Labels by which ESO knows the Secrets it makes."""


def maker(secret: Mapping[str, Any]) -> str | None:
    """Return the name of the ExternalSecret that controls a Secret."""
    for owner in secret["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner["kind"] == _KIND and owner["apiVersion"].startswith(_GROUP):
            return str(owner["name"])
    return None


def release(metadata: Mapping[str, Any], annotations: Mapping[str, str]) -> dict[str, Any]:
    """Return the metadata of a Secret that no ExternalSecret controls any more, and further annotations."""
    owners = [each for each in metadata.get("ownerReferences") or () if each["kind"] != _KIND]
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key not in MARKS}
    noted = {**(metadata.get("annotations") or {}), **annotations}
    return {**metadata, "ownerReferences": owners, "labels": labels, "annotations": noted}


def target_objection(secret: Mapping[str, Any] | None, name: str, owner: str, target: str) -> Problem | None:
    """Return why ESO may not make a Secret for a read.

    secret: what is there. name: of the read and its ExternalSecret. owner: who the read is to the direct back
    end. target: the Secret, as a message names it.
    """
    if secret is None or (by := maker(secret)) == name:
        return None
    if by is not None:
        return Problem(
            target,
            f"ExternalSecret {by} makes it, and one Secret has one maker",
            "give the read another target, or remove that ExternalSecret first",
        )
    if (secret["metadata"].get("annotations") or {}).get(PROJECTED_BY) == owner:
        return None
    return Problem(
        target,
        "it exists and this read did not make it: External Secrets Operator would drop its keys, own it, and"
        " let it go with the read",
        "give the read another target, or delete that Secret",
    )


def unserved_objection(secret: Mapping[str, Any] | None, owner: str, target: str) -> Problem | None:
    """Return why a read may not become ESO's while the cluster does not serve its kind."""
    annotations = {} if secret is None else secret["metadata"].get("annotations") or {}
    if annotations.get(PROJECTED_BY) != owner:
        return None
    return Problem(
        target,
        "the direct back end made it, and the cluster does not serve ExternalSecret: it would go, and nobody"
        " would make it again",
        "install External Secrets Operator first, or keep backend: direct",
    )


class Cluster(Protocol):
    """What is asked of the cluster. Methods raise CredfleetError."""

    def mark(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Read the metadata of a Secret."""
        ...

    def labels(self, namespace: str) -> Mapping[str, str] | None:
        """Read the labels of a namespace."""
        ...


def objections(
    reads: Iterable[Mapping[str, str]],
    callers: Iterable[Mapping[str, Any]],
    cluster: Cluster,
    *,
    served: bool,
) -> Iterator[tuple[str, Problem]]:
    """Look at the cluster and find, with its place, what of the stack's reads and callers ESO may not have.

    reads, callers: as the lookout is given them. served: whether the cluster serves ExternalSecret. A
    namespace that is not there yet is refused nothing: whoever makes it may label it.
    """
    for read in reads:
        secret = cluster.mark(read["namespace"], read["target"])
        target = f"Secret {read['namespace']}/{read['target']}"
        objection = (
            target_objection(secret, read["name"], read["owner"], target)
            if served
            else unserved_objection(secret, read["owner"], target)
        )
        if objection is not None:
            yield read["place"], objection.within(f"{read['place']}: {target}")
    for caller in callers:
        labels = cluster.labels(caller["namespace"])
        if labels is not None:
            known = {**labels, **caller["labels"]}
            yield from _conditions(caller, known)


def _conditions(caller: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[tuple[str, Problem]]:
    namespace = caller["namespace"]
    conditions = ClusterStoreSpec.model_validate({"conditions": caller["conditions"]}).conditions
    if allows(conditions, namespace, {NAME_LABEL: namespace, **labels}) is False:
        yield (
            caller["place"],
            Problem(
                f"{caller['place']}: {caller['store']}",
                f"namespace {namespace} meets none of spec.conditions",
                "extend them, label the namespace, or use another store",
            ),
        )
