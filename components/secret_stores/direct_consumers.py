"""Reads and pushes of the dynamic resources, carried out by the direct back end.

Separate from the providers, which load without the models. Everything here raises CredfleetError. When a read
changes its back end, its Secret stays. From ESO to direct: the ExternalSecret's creationPolicy becomes
Orphan, the owner reference is removed from the target, and only then does the update delete the
ExternalSecret. From direct to ESO: the target stays if an ExternalSecret of the same name will create it
(`externalsecret_controller.go` of ESO 2.9.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from components.dynamic import INCARNATION
from components.errors import CredfleetError, Problem, StoreError
from components.projection.kubernetes_secrets import open_secrets
from components.projection.model import SecretRef, WrittenCopy
from components.projection.projector import Projector, open_projector
from components.secret_stores.admission import (
    Purpose,
    Use,
    admit,
    parse,
    provider_from,
    push_objections,
    store_from,
)
from components.secret_stores.consumers import DeletionPolicy, ExternalSecret, Place, PushSecret
from components.secret_stores.direct import StackTarget, client_of, retry
from components.secret_stores.eso import V1, V1ALPHA1
from components.secret_stores.eso_cluster import maker, path_of, release
from components.secret_stores.gathering import read_objections
from components.secret_stores.kubernetes_server import strange_certificates
from components.secret_stores.model import goes_by_labels
from components.secret_stores.pushing import Pusher
from components.secret_stores.reading import STORE, Reading, list_versions
from components.secret_stores.specs import KubernetesSpec
from components.secret_stores.stack_cluster import StackCluster

Properties = Mapping[str, Any]

_KIND: Final = "ExternalSecret"
_ATTEMPTS: Final = 5
_STACKS: Final = "pulumi"
"""Prefix of the field managers under which stacks write objects."""


class DirectRead:
    """Read of a stack: {namespace, target, owner, read, store, provider?, labels}."""

    def __init__(self, properties: Properties, configured: Callable[[str], str | None]) -> None:
        self._target = StackTarget.configured(configured)
        self._properties = properties
        document = {**properties["read"], **{key: properties[key] for key in ("namespace", "target")}}
        read = parse(ExternalSecret, f"ExternalSecret {document['name']}", document)
        self._reading = Reading(
            source=SecretRef(STORE, read.store.name),
            target=SecretRef(read.namespace, read.target),
            owner=properties["owner"],
            previously=properties.get("previously") or (),
            incarnation=properties.get(INCARNATION),
            read=read,
            former=properties.get("former") or {},
        )

    def admitted(self) -> Use:
        """Resolve its provider, or raise why that is not allowed, before any secret is read."""
        use = _admitted(self._properties, Purpose.READ, self._target)
        _refuse(self._reading.read.title, read_objections(self._reading.read, use.kind))
        return use

    def obstacles(self) -> Sequence[CredfleetError]:
        """Return an error if its target has another owner."""
        taken = open_projector(self._target.cluster).taken(self._reading)
        return [] if taken is None or self._is_handed_over() else [taken]

    def write(self) -> WrittenCopy:
        """Write its target."""
        use = self.admitted()
        self._take_over()
        return retry(use, lambda: self._projector(use).write(self._reading))

    def is_current(self, known: str) -> bool:
        """Return whether the target, which has this digest, matches the store's present value."""
        return self._projector(self.admitted()).is_current(self._reading, known)

    def digest(self) -> str | None:
        """Return the digest of its target; None if it is missing or has another owner."""
        return open_projector(self._target.cluster).digest(self._reading)

    def remove(self) -> bool:
        """Delete its target, unless it now belongs to another owner or to ESO.

        False if a later incarnation of it has the target.
        """
        return self._is_left_to_eso() or open_projector(self._target.cluster).remove(self._reading)

    def _projector(self, use: Use) -> Projector:
        """Return a projector whose source is the store."""
        client = client_of(use, self._target, Purpose.READ)
        secrets = open_secrets(self._target.cluster)
        return Projector(secrets, lambda _: list_versions(self._reading.read, client))

    def _is_handed_over(self) -> bool:
        """Return whether a stack's ExternalSecret created its target."""
        target = self._reading.target
        secret = self._target.stack_cluster.mark(target.namespace, target.name)
        if secret is None or maker(secret) != self._reading.read.name:
            return False
        found = self._external_secret()
        managers = () if found is None else found["metadata"].get("managedFields") or ()
        return found is None or any(str(each.get("manager")).startswith(_STACKS) for each in managers)

    def _take_over(self) -> None:
        """Take its target over from its ExternalSecret, if that owns it."""
        if not self._is_handed_over():
            return
        if self._external_secret() is not None:
            orphan = {"spec": {"target": {"creationPolicy": "Orphan"}}}
            self._target.stack_cluster.merge(self._path, self._reading.read.title, orphan)
        secrets = open_secrets(self._target.cluster)
        for _ in range(_ATTEMPTS):
            secret = secrets.get(self._reading.target)
            if secret is None or maker(secret) is None:
                return
            metadata = release(secret["metadata"], self._reading.body({})["metadata"]["annotations"])
            if secrets.replace({**secret, "metadata": metadata}) is not None:
                return

    def _is_left_to_eso(self) -> bool:
        """Return whether an ExternalSecret of its name will create its target from now on."""
        found = self._external_secret()
        if found is None or found["metadata"].get("deletionTimestamp"):
            return False
        made = (found["spec"].get("target") or {}).get("name", self._reading.read.name)
        return made == self._reading.target.name

    def _external_secret(self) -> Mapping[str, Any] | None:
        cluster = self._target.stack_cluster
        if _KIND not in cluster.served(V1):
            return None
        return cluster.found(self._path, self._reading.read.title)

    @property
    def _path(self) -> str:
        return path_of(V1, _KIND, self._reading.read.namespace, self._reading.read.name)


class DirectPush:
    """Push of a stack: {namespace, owner, push, store, provider?, labels}."""

    def __init__(self, properties: Properties, configured: Callable[[str], str | None]) -> None:
        self._target = StackTarget.configured(configured)
        self._properties = properties
        document = {**properties["push"], "namespace": properties["namespace"]}
        self._push = parse(PushSecret, f"PushSecret {document['name']}", document)

    @property
    def places(self) -> Sequence[Place]:
        """Places that it writes."""
        return [each.place for each in self._push.data]

    def admitted(self) -> Use:
        """Resolve its provider, or raise why that is not allowed, before any secret is read."""
        use = _admitted(self._properties, Purpose.PUSH, self._target)
        _refuse(self._push.title, push_objections(self._push, use.kind))
        return use

    def obstacles(self) -> Sequence[CredfleetError]:
        """Return an error for each place that has another owner."""
        return [*self._pusher(self.admitted()).conflicts()]

    def write(self, former: Sequence[Place] = ()) -> Mapping[str, str]:
        """Write what differs. `former`: places that it wrote before."""
        use = self.admitted()
        return retry(use, lambda: self._pusher(use).write(former))

    def is_current(self, known: str) -> bool:
        """Return whether the pushed content has this digest, and the store has it."""
        return self._pusher(self.admitted()).is_current(known)

    def is_there(self) -> bool:
        """Return whether the store has any of its values."""
        return self._pusher(self.admitted()).is_there()

    def remove(self) -> bool:
        """Remove what it wrote, if its deletion policy is Delete; otherwise make no call.

        Any error, such as a missing credential, is reported with both possible fixes.
        """
        if self._push.deletion_policy is DeletionPolicy.NONE:
            return True
        try:
            self._pusher(self.admitted()).remove(self.places)
        except CredfleetError as error:
            raise StoreError(
                code=error.code,
                place=self._push.title,
                problem="what it pushed is to be removed, and is left in the store:"
                f" {error.place}: {error.problem}",
                fix=f"{error.fix}; or, to leave it there for good, take the push out of the state of the"
                " stack with pulumi state delete",
            ) from None
        return True

    def _pusher(self, use: Use) -> Pusher:
        client = client_of(use, self._target, Purpose.PUSH)
        return Pusher(self._push, self._properties["owner"], open_secrets(self._target.cluster).get, client)


def _refuse(place: str, objections: Iterable[Problem]) -> None:
    for objection in objections:
        raise StoreError.of(objection, "refused", place)


def _admitted(properties: Properties, purpose: Purpose, target: StackTarget) -> Use:
    store, given = store_from(properties["store"]), properties.get("provider")
    provider = None if given is None else provider_from(given)
    caller, labels = properties["namespace"], properties["labels"]
    if goes_by_labels(store):
        labels = {**(target.stack_cluster.labels(caller) or {}), **labels}
    use = admit(store, provider, caller, labels, purpose)
    strange: Problem | None = None
    if isinstance(use.provider.spec, KubernetesSpec):
        with suppress(CredfleetError):  # this update might create the certificates; the login checks again
            strange = strange_certificates(use.provider.spec.server, target.stack_cluster)
    _refuse(f"{store.title}: {use.provider.key.title}", filter(None, [strange]))
    return use


def obstacles(
    push: Mapping[str, Any], cluster: StackCluster, configured: Callable[[str], str | None]
) -> Iterator[Problem]:
    """Yield what blocks a push by ESO, given as the lookout's input; nothing if it cannot be read.

    ESO overwrites whatever is at the place (docs/compatibility.md). A place with another owner is therefore
    rejected, unless the push's own PushSecret already writes to it.
    """
    document = push["push"]
    path = path_of(V1ALPHA1, "PushSecret", push["namespace"], document["name"])
    try:
        live = cluster.found(path, push["place"])
    except CredfleetError:
        return
    told = {_place_of(each) for each in (live or {}).get("spec", {}).get("data", ())}
    new = [each for each in document["data"] if (each["remoteKey"], each.get("remoteNamespace")) not in told]
    try:
        found = DirectPush({**push, "push": {**document, "data": new}}, configured).obstacles()
    except CredfleetError:
        return
    yield from (Problem(push["place"], each.problem, each.fix) for each in found)


def _place_of(told: Mapping[str, Any]) -> tuple[str, str | None]:
    elsewhere = (told.get("metadata") or {}).get("spec", {}).get("remoteNamespace")
    return told["match"]["remoteRef"]["remoteKey"], elsewhere
