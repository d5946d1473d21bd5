"""Reads and pushes of the direct back end as dynamic resources: bytes stay in the cluster and this process.

Neither inputs nor outputs hold a byte of a secret: the outputs are where it is, a keyed digest of it, and the
version of what it was made from. The path of this module and the names of its classes are written into the
state of stacks; they never move. Import-pure, and light: the models are imported by the first call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pulumi import Input, Output
from pulumi.dynamic import CheckFailure
from pulumi.output import Unknown

from components.documents import change_leaves
from components.dynamic import (
    FORESEEN,
    IDENTITY,
    IN_PREVIEW,
    DynamicResource,
    FollowingProvider,
    Properties,
    is_unknown,
)
from components.errors import CredfleetError, StoreError
from components.importing import IMPORT_LOCK
from components.projection.kubernetes_secrets import open_secrets
from components.projection.model import SecretRef, differs
from components.projection.provider import CompositionArgs, CompositionProvider, Rendered

if TYPE_CHECKING:
    from components.secret_stores.direct_consumers import DirectPush, DirectRead

_LOGIN: Final = frozenset({"auth", "authRef", "authSecretRef", "serviceAccountRef", "caProvider", "caBundle"})
"""Fields of providers' specs that say who asks, not where."""

_MOMENTARY: Final = frozenset({"unreachable", "not-allowed"})
"""What a preview does not fail on: the update says it, if it lasts."""


class _StoreProvider(FollowingProvider):
    """A provider between a store and Secrets of a namespace."""

    def failures(self, inputs: Properties, _olds: Properties) -> Iterator[CheckFailure]:
        """Refuse, in a preview too, what the rule of references refuses, then what is in the way now."""
        if isinstance(inputs["namespace"], Unknown):
            return
        # a name that could be, where one is known only at the update
        supposed = change_leaves(inputs, lambda value: "unknown" if isinstance(value, Unknown) else value)
        try:
            consumer = self._consumer(supposed)
            consumer.admitted()
        except CredfleetError as error:
            if error.code not in _MOMENTARY:
                yield CheckFailure("", str(error))
            return
        if is_unknown(inputs):
            return
        try:
            obstacles = consumer.obstacles()
        except CredfleetError:
            return
        for obstacle in obstacles:
            yield CheckFailure("", str(obstacle))

    def is_current(self, props: Properties, digest: str) -> bool:
        """Whether what was written is what its source says now."""
        return self._consumer(props).is_current(digest)

    def is_predicted_otherwise(self, props: Properties) -> bool:
        """Whether a Secret that is made, or pushed, will hold something else."""
        foreseen = props.get(FORESEEN) or {}
        if not foreseen:
            return False
        secrets = open_secrets(self.cluster)
        return any(
            differs(secrets.get(SecretRef(props["namespace"], name)), each) for name, each in foreseen.items()
        )

    def delete_resource(self, _id: str, props: Properties) -> bool:
        """Remove what was made, if it is still ours."""
        return self._consumer(props).remove()

    def _consumer(self, props: Properties) -> DirectRead | DirectPush:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoreArgs:
    """Who uses which store.

    owner: who wants it, the same text whenever the program runs. store, provider: as
    `admission.document_of` writes them; provider is None for an embedded one. labels: of the namespace, as
    far as the stack declares them; others are looked up. foreseen: in a preview, Secret of the namespace →
    digests of what it will hold: that which is made, or those that are pushed.
    """

    namespace: Input[str] = field(metadata=IDENTITY)
    owner: str = field(metadata=IDENTITY)
    store: Mapping[str, Any]
    provider: Mapping[str, Any] | None
    labels: Mapping[str, str]
    foreseen: Input[Mapping[str, Mapping[str, str]] | None] = field(
        default=None, compare=False, metadata=IN_PREVIEW, kw_only=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretReadArgs(_StoreArgs):
    """A Secret `target` of a namespace, made of values of a store.

    read: as ExternalSecret has it, without what is said here.
    """

    target: str = field(metadata=IDENTITY)
    read: Mapping[str, Any]


class SecretReadProvider(_StoreProvider):
    """Makes Secrets of what stores say."""

    args = SecretReadArgs
    outputs = ("reference", "digest", "sourceVersion")
    named_by = ("namespace", "target")

    def create_resource(self, props: Properties) -> Properties:
        """Make the Secret; one that is there already is taken as its own."""
        done = self._consumer(props).write()
        return {
            "reference": f"{props['namespace']}/{props['target']}",
            "digest": done.digest,
            "sourceVersion": done.source_version,
        }

    def update_resource(self, _id: str, olds: Properties, news: Properties) -> Properties:
        """Make the Secret again, without the labels and annotations that it is given no more."""
        return self.create_resource({**news, "former": olds["read"]})

    def read_resource(self, _id: str, props: Properties) -> Properties | None:
        """Return the digest of the Secret; None if it is gone, or another owner's."""
        found = self._consumer(props).digest()
        return None if found is None else {"digest": found}

    def _consumer(self, props: Properties) -> DirectRead:
        with IMPORT_LOCK:
            from components.secret_stores.direct_consumers import DirectRead

        return DirectRead(props, self.configured)


class SecretRead(DynamicResource[SecretReadArgs]):
    """A Secret that follows what a store says."""

    provider = SecretReadProvider

    reference: Output[str]
    digest: Output[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretPushArgs(_StoreArgs):
    """Keys of Secrets of a namespace, written to a store; one that is elsewhere makes another push.

    push: {name, store, data, updatePolicy, deletionPolicy}, as PushSecret has them.
    """

    push: Mapping[str, Any]


class SecretPushProvider(_StoreProvider):
    """Writes keys of Secrets to stores."""

    args = SecretPushArgs
    outputs = ("places", "digest", "sourceVersion")
    delete_first = True

    def identity(self, olds: Properties, news: Properties) -> Collection[str]:
        """Return the inputs whose change makes another push, a store that moved among them."""
        moved = [key for key in ("store", "provider") if _address(key, olds) != _address(key, news)]
        return [*super().identity(olds, news), *moved]

    def name(self, state: Properties) -> str:
        """Return namespace/name of the push."""
        return f"{state['namespace']}/{state['push']['name']}"

    def create_resource(self, props: Properties) -> Properties:
        """Push; what it wrote before is taken as its own."""
        return self._pushed(self._consumer(props))

    def update_resource(self, _id: str, olds: Properties, news: Properties) -> Properties:
        """Push again, and remove what is pushed no more."""
        return self._pushed(self._consumer(news), self._consumer(olds))

    def read_resource(self, _id: str, props: Properties) -> Properties | None:
        """Return None when nothing of the push is in the store any more."""
        return {} if self._consumer(props).is_there() else None

    def _pushed(self, consumer: DirectPush, former: DirectPush | None = None) -> Properties:
        written = consumer.write([] if former is None else former.places)
        return {"places": [str(each) for each in consumer.places], **written}

    def _consumer(self, props: Properties) -> DirectPush:
        with IMPORT_LOCK:
            from components.secret_stores.direct_consumers import DirectPush

        return DirectPush(props, self.configured)


class SecretPush(DynamicResource[SecretPushArgs]):
    """Values of a store that follow Secrets of the cluster."""

    provider = SecretPushProvider

    places: Output[list[str]]
    digest: Output[str]


def _address(key: str, props: Properties) -> Any:
    """Return where a store or provider keeps secrets, without what says who asks."""
    return _without_login(props["store"]["spec"].get("provider") if key == "store" else props.get(key))


def _without_login(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_login(each) for key, each in value.items() if key not in _LOGIN}
    return value


class LoginSecretProvider(CompositionProvider):
    """Writes the Secret that a provider logs in with, of a credential that is elsewhere."""

    def render(self, recipe: Properties, contents: Sequence[bytes], places: Sequence[str]) -> Rendered:
        """Return type and values of the Secret; raises StoreError for a credential that fits no such."""
        with IMPORT_LOCK:
            from components.secret_stores.login import login_problem, login_values

        [content], keys = contents, recipe["keys"]
        if (fault := login_problem(keys, content)) is not None:
            raise StoreError.of(fault, "credential-unfit", places[0])
        return "Opaque", login_values(keys, content)


class LoginSecret(DynamicResource[CompositionArgs]):
    """What a provider logs in with, which follows where it is."""

    provider = LoginSecretProvider
