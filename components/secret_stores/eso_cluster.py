"""Status of External Secrets Operator (ESO) objects in the cluster, and ownership of Secrets.

An object's status is its Ready condition (`GetResourceVersion` of ESO 2.9.0). ESO takes over any Secret with
the target name of a read: it drops unknown keys and owns the rest, which it deletes with the read
(`applyOwnership`). An existing Secret must therefore belong to the read: created by its ExternalSecret, or by
the direct back end for the same read, which hands it over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from components.errors import Problem, ProjectionError
from components.projection.kubernetes_secrets import open_secrets
from components.projection.model import PROJECTED_BY, SecretRef, data_of, render_secret
from components.secret_stores.conditions import NAME_LABEL, allows
from components.secret_stores.model import ClusterStoreSpec
from components.secret_stores.stack_cluster import StackCluster
from components.secret_stores.templates import VALUE

JsonObject: TypeAlias = Mapping[str, Any]
Look: TypeAlias = Callable[[Collection[str]], Mapping[str, JsonObject]]
"""Returns those of the named objects that exist."""

UNSEEN: Final = "External Secrets Operator has not looked at it"
OUTDATED: Final = "External Secrets Operator has not looked at it since it was changed"
HOLLOW: Final = (
    "its sources have nothing, so External Secrets Operator leaves its Secret as it was, or makes none"
)

LIFE_SECONDS: Final = 10.0
"""How long to wait for a sign that any controller reconciles."""

_RETAINED: Final = "secret retained due to DeletionPolicy=Retain"
"""ESO's message for a read that is Ready but found no values."""

_EVERY_SECONDS: Final = 1.0
_PLURALS: Final = {
    "SecretStore": "secretstores",
    "ClusterSecretStore": "clustersecretstores",
    "ExternalSecret": "externalsecrets",
    "PushSecret": "pushsecrets",
}


def path_of(api_version: str, kind: str, namespace: str | None, name: str | None) -> str:
    """Return the API path of an object; without a name, of its list."""
    within = "" if namespace is None else f"/namespaces/{quote(namespace, safe='')}"
    ending = "" if name is None else f"/{quote(name, safe='')}"
    return f"/apis/{api_version}{within}/{_PLURALS[kind]}{ending}"


def shortcoming(found: JsonObject) -> str | None:
    """Return why an object is not reconciled as written; None if it is.

    Only ESO's own part of a message is reported: text after a colon comes from elsewhere, such as a provider.
    """
    status = found.get("status") or {}
    ready = next((each for each in status.get("conditions") or () if each.get("type") == "Ready"), None)
    if ready is None:
        return UNSEEN
    if ready.get("status") != "True":
        said = str(ready.get("message") or "no more is said").partition(": ")[0]
        return f"Ready is {ready.get('status')}, {ready.get('reason') or 'without a reason'}: {said}"
    if ready.get("message") == _RETAINED:
        return HOLLOW
    synced = str(status.get("syncedResourceVersion") or "").partition("-")[0]
    return OUTDATED if synced and synced != str(found["metadata"].get("generation")) else None


def shortcomings(objects: Mapping[str, JsonObject]) -> dict[str, str]:
    """Return the shortcoming of each object that has one."""
    return {name: why for name, each in objects.items() if (why := shortcoming(each)) is not None}


def await_states(
    names: Collection[str],
    look: Look,
    seconds: float,
    pause: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> dict[str, str]:
    """Wait until these objects are reconciled; return the remaining shortcomings on timeout.

    Without any sign of a running ESO, the wait ends early: ESO marks each object as soon as it sees it.
    """
    begin = now()
    while True:
        found = look(names)
        short = shortcomings(found)
        waited = now() - begin
        alive = any(map(_is_seen, found.values()))
        if not short or waited >= seconds or (waited >= LIFE_SECONDS and not alive):
            return short
        pause(_EVERY_SECONDS)


def _is_seen(found: JsonObject) -> bool:
    finalizers = found["metadata"].get("finalizers") or ()
    return bool((found.get("status") or {}).get("conditions")) or any(
        "externalsecrets" in each for each in finalizers
    )


_GROUP: Final = "external-secrets.io/"
_KIND: Final = "ExternalSecret"

MARKS: Final = ("reconcile.external-secrets.io/created-by", "reconcile.external-secrets.io/managed")
"""Labels that ESO sets on the Secrets it creates."""


def maker(secret: Mapping[str, Any]) -> str | None:
    """Return the name of the ExternalSecret that controls a Secret, or None."""
    for owner in secret["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner["kind"] == _KIND and owner["apiVersion"].startswith(_GROUP):
            return str(owner["name"])
    return None


_UNWRITTEN: Final = ": could not update secret"
"""End of ESO's message for a Secret that the API server rejected; by then ESO has the values."""


def recast(found: Mapping[str, JsonObject], cluster: str | None) -> Mapping[str, JsonObject]:
    """Delete Secrets whose immutable type must change, so that ESO, which has the values, recreates them.

    First a dry run checks that the API server accepts the present values with the new type; missing values
    are `{}`. Skipped if the template might lack a value, for which ESO reports the same error.
    """
    secrets = open_secrets(cluster)
    for each in found.values():
        if each["kind"] == _KIND and (shortcoming(each) or _UNWRITTEN).endswith(_UNWRITTEN):
            metadata, spec = each["metadata"], each["spec"]
            ref = SecretRef(metadata["namespace"], spec["target"]["name"])
            template, secret = spec["target"].get("template") or {}, secrets.get(ref)
            type_, texts = template.get("type") or "Opaque", template.get("data") or {}
            named = {one["secretKey"] for one in spec.get("data") or ()}
            is_made = {*VALUE.findall(" ".join(texts.values()))} <= named
            if is_made and secret and maker(secret) == metadata["name"] and secret["type"] != type_:
                held = {key: its for key, its in data_of(secret).items() if key in texts or not texts}
                data = {**dict.fromkeys(texts or named, "e30="), **held}
                with suppress(ProjectionError):
                    secrets.create(render_secret(ref, "", "", data, type_=type_), rehearsed=True)
                    secrets.delete(secret)
    return found


def release(metadata: Mapping[str, Any], annotations: Mapping[str, str]) -> dict[str, Any]:
    """Return Secret metadata without ESO's ownership, and with additional annotations."""
    owners = [each for each in metadata.get("ownerReferences") or () if each["kind"] != _KIND]
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key not in MARKS}
    noted = {**(metadata.get("annotations") or {}), **annotations}
    return {**metadata, "ownerReferences": owners, "labels": labels, "annotations": noted}


def target_objection(
    secret: Mapping[str, Any] | None, read: Mapping[str, str], *, served: bool
) -> tuple[str, str] | None:
    """Return why ESO must not create the Secret of a read, and the fix. `secret`: the existing one.

    If the cluster does not serve ExternalSecret, deleting the direct back end's Secret would leave no other.
    """
    if secret is None:
        return None
    by, noted = maker(secret), secret["metadata"].get("annotations") or {}
    is_its_own = noted.get(PROJECTED_BY) == read["owner"]
    if not served and is_its_own:
        return (
            "the direct back end made it, and the cluster does not serve ExternalSecret: it would go, and"
            " nothing would make it again",
            "install External Secrets Operator first, or keep backend: direct",
        )
    if served and by not in (None, read["name"]):
        return (
            f"ExternalSecret {by} makes it, and one Secret has one maker",
            "give the read another target, or remove that ExternalSecret first",
        )
    if served and by is None and not is_its_own:
        return (
            "it exists and this read did not make it: External Secrets Operator would drop its keys, own it,"
            " and let it go with the read",
            "give the read another target, or delete that Secret",
        )
    return None


def objections(
    reads: Iterable[Mapping[str, str]],
    callers: Iterable[Mapping[str, Any]],
    cluster: StackCluster,
    *,
    served: bool,
) -> Iterator[tuple[str, Problem]]:
    """Yield what blocks ESO's reads and callers in the cluster, each with its configuration path.

    `reads`, `callers`: inputs of the lookout. `served`: whether the cluster serves ExternalSecret. A
    namespace that does not exist yet is not rejected: its creator might label it. Raises CredfleetError.
    """
    for read in reads:
        secret = cluster.mark(read["namespace"], read["target"])
        if (objection := target_objection(secret, read, served=served)) is not None:
            place = f"{read['place']}: Secret {read['namespace']}/{read['target']}"
            yield read["place"], Problem(place, *objection)
    for caller in callers:
        labels = cluster.labels(caller["namespace"])
        if labels is not None:
            known = {**labels, **caller["labels"]}
            conditions = ClusterStoreSpec.model_validate({"conditions": caller["conditions"]}).conditions
            namespace = caller["namespace"]
            if allows(conditions, namespace, {NAME_LABEL: namespace, **known}) is False:
                problem = Problem(
                    f"{caller['place']}: {caller['store']}",
                    f"namespace {namespace} meets none of spec.conditions",
                    "extend them, label the namespace, or use another store",
                )
                yield caller["place"], problem
