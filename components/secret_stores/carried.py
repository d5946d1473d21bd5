"""Reads and pushes as the dynamic resources state them: from properties to what is done in the cluster.

Apart from the providers, which load without the models. Everything here raises CredfleetError.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from components.errors import CredfleetError, Problem, StoreError
from components.projection.kubernetes_secrets import open_projector
from components.projection.model import Written
from components.secret_stores.clients.client import Place
from components.secret_stores.consumers import Backend, DeletionPolicy, ExternalSecret, PushSecret
from components.secret_stores.direct import (
    Asked,
    Purpose,
    Site,
    Use,
    admit,
    lent_client,
    provider_from,
    store_from,
)
from components.secret_stores.faults import faults
from components.secret_stores.model import ClusterSecretStore
from components.secret_stores.pushing import Done, Pusher, place, push_objections
from components.secret_stores.reading import Reading, is_current, open_secrets, read_objections, written
from components.secret_stores.stack_cluster import StackCluster

Properties = Mapping[str, Any]
Model = TypeVar("Model", bound=BaseModel)


class CarriedRead:
    """A read of a stack: {namespace, target, owner, read, store, provider?, labels}."""

    def __init__(self, properties: Properties, configured: Callable[[str], str | None]) -> None:
        self._site = Site.configured(configured)
        self._properties = properties
        document = {**properties["read"], "namespace": properties["namespace"]}
        read = _parsed(
            ExternalSecret, {**document, "target": properties["target"], "backend": Backend.DIRECT}
        )
        self._reading = Reading(read, properties["owner"])

    def admitted(self) -> Use:
        """Find its way, or the reason why there is none, before anybody is asked for a secret."""
        use = _admitted(self._properties, Purpose.READ, self._site)
        _refuse(self._reading.read.title, read_objections(self._reading.read, use.kind))
        return use

    def obstacles(self) -> Sequence[CredfleetError]:
        """Tell that its target is somebody else's."""
        taken = open_projector(self._site.cluster).taken(self._reading)
        return [] if taken is None else [taken]

    def write(self) -> Written:
        """Make its target."""
        use = self.admitted()
        return use.retried(lambda: written(self._reading, use, self._site))

    def is_current(self, known: str) -> bool:
        """Whether its target, of this digest, is what the store says now."""
        return is_current(self._reading, self.admitted(), self._site, known)

    def digest(self) -> str | None:
        """Tell what is in its target; None when that is gone, or somebody else's."""
        return open_projector(self._site.cluster).digest(self._reading)

    def remove(self) -> None:
        """Remove its target, unless that is somebody else's."""
        open_projector(self._site.cluster).remove(self._reading)


class CarriedPush:
    """A push of a stack: {namespace, owner, push, store, provider?, labels}."""

    def __init__(self, properties: Properties, configured: Callable[[str], str | None]) -> None:
        self._site = Site.configured(configured)
        self._properties = properties
        document = {**properties["push"], "namespace": properties["namespace"], "backend": Backend.DIRECT}
        self._push = _parsed(PushSecret, document)

    @property
    def places(self) -> Sequence[Place]:
        """Where it goes to."""
        return [place(each) for each in self._push.data]

    def admitted(self) -> Use:
        """Find its way, or the reason why there is none, before anybody is asked for a secret."""
        use = _admitted(self._properties, Purpose.PUSH, self._site)
        _refuse(self._push.title, push_objections(self._push, use.kind))
        return use

    def obstacles(self) -> Sequence[CredfleetError]:
        """Tell the places that somebody else has."""
        with self._pusher(self.admitted()) as pusher:
            return [*pusher.conflicts()]

    def write(self, former: Sequence[Place] = ()) -> Done:
        """Write what differs; former: where it went to before."""
        use = self.admitted()

        def attempt() -> Done:
            with self._pusher(use) as pusher:
                return pusher.write(former)

        return use.retried(attempt)

    def is_current(self, known: str) -> bool:
        """Whether what is pushed has this digest, and the store has it."""
        with self._pusher(self.admitted()) as pusher:
            return pusher.is_current(known)

    def is_there(self) -> bool:
        """Whether the store has anything of it."""
        with self._pusher(self.admitted()) as pusher:
            return pusher.is_there()

    def remove(self) -> None:
        """Remove what it wrote, as its deletion policy says; nobody is asked where it says to leave it.

        Whatever keeps it from that, such as a credential that is gone, is told with both ways on.
        """
        if self._push.deletion_policy is DeletionPolicy.NONE:
            return
        try:
            with self._pusher(self.admitted()) as pusher:
                pusher.remove(self.places)
        except CredfleetError as error:
            raise StoreError(
                code=error.code,
                place=self._push.title,
                cause="what it pushed is to be removed, and is left in the store:"
                f" {error.place}: {error.cause}",
                mend=f"{error.mend}; or, to leave it there for good, take the push out of the state of the"
                " stack with pulumi state delete",
            ) from None

    @contextmanager
    def _pusher(self, use: Use) -> Generator[Pusher]:
        with lent_client(use, self._site, Purpose.PUSH) as client:
            secrets = open_secrets(self._site)
            yield Pusher(self._push, self._properties["owner"], secrets, client)


def _refuse(place: str, objections: Iterable[Problem]) -> None:
    for objection in objections:
        raise StoreError(code="refused", place=place, cause=objection.cause, mend=objection.mend)


def _parsed(model: type[Model], document: Mapping[str, Any]) -> Model:
    with _told(model.__name__, document):
        return model.model_validate(document)


@contextmanager
def _told(kind: str, document: Mapping[str, Any]) -> Generator[None]:
    try:
        yield
    except ValidationError as error:
        path, cause, mend = next(faults(error, None))
        raise StoreError(
            code="misconfigured", place=f"{kind} {document['name']}: {path}", cause=cause, mend=mend
        ) from None


def _admitted(properties: Properties, purpose: Purpose, site: Site) -> Use:
    with _told("store", properties["store"]):
        store = store_from(properties["store"])
    document, provider = properties.get("provider"), None
    if document is not None:
        with _told(document["kind"], document):
            provider = provider_from(document)
    if isinstance(provider, Problem):
        raise StoreError(code="refused", place=store.title, cause=provider.cause, mend=provider.mend)
    caller, labels = properties["namespace"], properties["labels"]
    if isinstance(store, ClusterSecretStore) and any(
        each.namespace_selector for each in store.spec.conditions
    ):
        labels = {**StackCluster(site.target).labels(caller), **labels}
    return admit(Asked(store, provider, caller, labels, purpose))
