"""Reads and pushes as the dynamic resources state them: from properties to what is done in the cluster.

Apart from the providers, which load without the models. Everything here raises CredfleetError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from components.dynamic import INCARNATION
from components.errors import CredfleetError, Problem, StoreError
from components.projection.kubernetes_secrets import open_projector
from components.projection.model import WrittenCopy
from components.secret_stores.admission import (
    Purpose,
    StoreUse,
    Use,
    admit,
    parse,
    provider_from,
    push_objections,
    read_objections,
    store_from,
)
from components.secret_stores.clients.client import Place
from components.secret_stores.consumers import Backend, DeletionPolicy, ExternalSecret, PushSecret
from components.secret_stores.direct import StackTarget, client_of, retry
from components.secret_stores.handover import is_handed_over, is_left_to_eso, take_over
from components.secret_stores.kubernetes_server import strange_certificates
from components.secret_stores.model import goes_by_labels
from components.secret_stores.pushing import Done, Pusher, place
from components.secret_stores.reading import Reading, is_current, open_secrets, write_copy
from components.secret_stores.specs import KubernetesSpec

Properties = Mapping[str, Any]


class DirectRead:
    """A read of a stack: {namespace, target, owner, read, store, provider?, labels}."""

    def __init__(self, properties: Properties, configured: Callable[[str], str | None]) -> None:
        self._target = StackTarget.configured(configured)
        self._properties = properties
        document = {**properties["read"], "namespace": properties["namespace"]}
        document |= {"target": properties["target"], "backend": Backend.DIRECT}
        read = parse(ExternalSecret, f"ExternalSecret {document['name']}", document)
        self._reading = Reading(read, properties["owner"], properties.get(INCARNATION))

    def admitted(self) -> Use:
        """Find its way, or the reason why there is none, before anybody is asked for a secret."""
        use = _admitted(self._properties, Purpose.READ, self._target)
        _refuse(self._reading.read.title, read_objections(self._reading.read, use.kind))
        return use

    def obstacles(self) -> Sequence[CredfleetError]:
        """Return the error that its target is somebody else's, if it is."""
        taken = open_projector(self._target.cluster).taken(self._reading)
        return [] if taken is None or is_handed_over(self._reading, self._target) else [taken]

    def write(self) -> WrittenCopy:
        """Make its target."""
        use = self.admitted()
        take_over(self._reading, self._target)
        return retry(use, lambda: write_copy(self._reading, use, self._target))

    def is_current(self, known: str) -> bool:
        """Whether its target, of this digest, is what the store says now."""
        return is_current(self._reading, self.admitted(), self._target, known)

    def digest(self) -> str | None:
        """Return what is in its target; None when that is gone, or somebody else's."""
        return open_projector(self._target.cluster).digest(self._reading)

    def remove(self) -> bool:
        """Remove its target, unless that is somebody else's, or ESO's by now.

        False for one that a later incarnation of it has.
        """
        left = is_left_to_eso(self._reading, self._target)
        return left or open_projector(self._target.cluster).remove(self._reading)


class DirectPush:
    """A push of a stack: {namespace, owner, push, store, provider?, labels}."""

    def __init__(self, properties: Properties, configured: Callable[[str], str | None]) -> None:
        self._target = StackTarget.configured(configured)
        self._properties = properties
        document = {**properties["push"], "namespace": properties["namespace"], "backend": Backend.DIRECT}
        self._push = parse(PushSecret, f"PushSecret {document['name']}", document)

    @property
    def places(self) -> Sequence[Place]:
        """Where it goes to."""
        return [place(each) for each in self._push.data]

    def admitted(self) -> Use:
        """Find its way, or the reason why there is none, before anybody is asked for a secret."""
        use = _admitted(self._properties, Purpose.PUSH, self._target)
        _refuse(self._push.title, push_objections(self._push, use.kind))
        return use

    def obstacles(self) -> Sequence[CredfleetError]:
        """Return an error for each place that somebody else has."""
        return [*self._pusher(self.admitted()).conflicts()]

    def write(self, former: Sequence[Place] = ()) -> Done:
        """Write what differs; former: where it went to before."""
        use = self.admitted()

        return retry(use, lambda: self._pusher(use).write(former))

    def is_current(self, known: str) -> bool:
        """Whether what is pushed has this digest, and the store has it."""
        return self._pusher(self.admitted()).is_current(known)

    def is_there(self) -> bool:
        """Whether the store has anything of it."""
        return self._pusher(self.admitted()).is_there()

    def remove(self) -> bool:
        """Remove what it wrote, as its deletion policy says; nobody is asked where it says to leave it.

        Whatever keeps it from that, such as a credential that is gone, is told with both ways on.
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
        return Pusher(self._push, self._properties["owner"], open_secrets(self._target), client)


def _refuse(place: str, objections: Iterable[Problem]) -> None:
    for objection in objections:
        raise StoreError(code="refused", place=place, problem=objection.problem, fix=objection.fix)


def _admitted(properties: Properties, purpose: Purpose, target: StackTarget) -> Use:
    store, given = store_from(properties["store"]), properties.get("provider")
    provider = None if given is None else provider_from(given)
    caller, labels = properties["namespace"], properties["labels"]
    if goes_by_labels(store):
        labels = {**(target.stack_cluster.labels(caller) or {}), **labels}
    use = admit(StoreUse(store, provider, caller, labels, purpose))
    strange: Problem | None = None
    if isinstance(use.provider.spec, KubernetesSpec):
        with suppress(CredfleetError):  # certificates may come by this very update: who logs in looks again
            strange = strange_certificates(use.provider.spec.server, target.stack_cluster)
    _refuse(f"{store.title}: {use.provider.key.title}", filter(None, [strange]))
    return use
