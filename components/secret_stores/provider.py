"""Reads and pushes of the direct back end as dynamic resources; secret bytes stay out of the state.

Inputs and outputs contain no secret bytes: outputs are the location, a keyed digest, and the source version.
The path of this module and its class names are stored in the state of stacks and must not change. Import-pure
and light: the models are imported by the first call.
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
"""Fields of provider specs that define who logs in, not where."""

_MOMENTARY: Final = frozenset({"unreachable", "not-allowed"})
"""Errors that do not fail a preview; if they persist, the update reports them."""


class _StoreProvider(FollowingProvider):
    """Dynamic provider between a store and Secrets of a namespace."""

    def failures(self, inputs: Properties, _olds: Properties) -> Iterator[CheckFailure]:
        """Reject, in previews too, what the rule of references rejects, then what blocks the consumer now."""
        if isinstance(inputs["namespace"], Unknown):
            return
        # a placeholder for names that are known only during the update
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
        """Return whether the written content equals the present source."""
        return self._consumer(props).is_current(digest)

    def is_predicted_otherwise(self, props: Properties) -> bool:
        """Return whether a Secret that is written or pushed will have other content after this update."""
        foreseen = props.get(FORESEEN) or {}
        if not foreseen:
            return False
        secrets = open_secrets(self.cluster)
        return any(
            differs(secrets.get(SecretRef(props["namespace"], name)), each) for name, each in foreseen.items()
        )

    def delete_resource(self, _id: str, props: Properties) -> bool:
        """Remove what was written, if this resource still owns it."""
        return self._consumer(props).remove()

    def _consumer(self, props: Properties) -> DirectRead | DirectPush:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoreArgs:
    """Consumer and its store.

    `owner`: id of the consumer, the same in every run. `store`, `provider`: from `admission.document_of`;
    `provider` is None for an embedded one. `labels`: of the namespace, as far as the stack declares them;
    others are read from the cluster. `foreseen`: in a preview, Secret of the namespace → digests of its
    future content, for the Secret that is written or those that are pushed.
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
    """Secret `target` of a namespace, made from values of a store.

    `read`: as in an ExternalSecret, without the other inputs.
    """

    target: str = field(metadata=IDENTITY)
    read: Mapping[str, Any]


class SecretReadProvider(_StoreProvider):
    """Writes Secrets from values of stores."""

    args = SecretReadArgs
    outputs = ("reference", "digest", "sourceVersion")
    named_by = ("namespace", "target")

    def create_resource(self, props: Properties) -> Properties:
        """Write the Secret; an existing one of the same owner is adopted."""
        done = self._consumer(props).write()
        return {
            "reference": f"{props['namespace']}/{props['target']}",
            "digest": done.digest,
            "sourceVersion": done.source_version,
        }

    def update_resource(self, _id: str, olds: Properties, news: Properties) -> Properties:
        """Write the Secret again, and remove labels and annotations that are no longer set."""
        return self.create_resource({**news, "former": olds["read"]})

    def read_resource(self, _id: str, props: Properties) -> Properties | None:
        """Return the digest of the Secret; None if it is missing or has another owner."""
        found = self._consumer(props).digest()
        return None if found is None else {"digest": found}

    def _consumer(self, props: Properties) -> DirectRead:
        with IMPORT_LOCK:
            from components.secret_stores.direct_consumers import DirectRead

        return DirectRead(props, self.configured)


class SecretRead(DynamicResource[SecretReadArgs]):
    """Secret that follows values of a store."""

    provider = SecretReadProvider

    reference: Output[str]
    digest: Output[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretPushArgs(_StoreArgs):
    """Keys of Secrets of a namespace, written to a store; another address replaces the push.

    `push`: {name, store, data, updatePolicy, deletionPolicy}, as in a PushSecret.
    """

    push: Mapping[str, Any]


class SecretPushProvider(_StoreProvider):
    """Writes keys of Secrets to stores."""

    args = SecretPushArgs
    outputs = ("places", "digest", "sourceVersion")
    delete_first = True

    def identity(self, olds: Properties, news: Properties) -> Collection[str]:
        """Return the changed inputs that require replacement, including a store at another address."""
        moved = [key for key in ("store", "provider") if _address(key, olds) != _address(key, news)]
        return [*super().identity(olds, news), *moved]

    def name(self, state: Properties) -> str:
        """Return namespace/name of the push."""
        return f"{state['namespace']}/{state['push']['name']}"

    def create_resource(self, props: Properties) -> Properties:
        """Push; values it wrote before are adopted."""
        return self._pushed(self._consumer(props))

    def update_resource(self, _id: str, olds: Properties, news: Properties) -> Properties:
        """Push again, and remove values that are no longer pushed."""
        return self._pushed(self._consumer(news), self._consumer(olds))

    def read_resource(self, _id: str, props: Properties) -> Properties | None:
        """Return None if the store has none of the push's values."""
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
    """Return the address of a store or provider, without its login fields."""
    return _without_login(props["store"]["spec"].get("provider") if key == "store" else props.get(key))


def _without_login(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_login(each) for key, each in value.items() if key not in _LOGIN}
    return value


class LoginSecretProvider(CompositionProvider):
    """Writes the login Secret of a provider from an external reference."""

    def render(self, recipe: Properties, contents: Sequence[bytes], places: Sequence[str]) -> Rendered:
        """Return type and values of the Secret; raises StoreError if the credential does not fit."""
        with IMPORT_LOCK:
            from components.secret_stores.login import login_problem, login_values

        [content], keys = contents, recipe["keys"]
        if (fault := login_problem(keys, content)) is not None:
            raise StoreError.of(fault, "credential-unfit", places[0])
        return "Opaque", login_values(keys, content)


class LoginSecret(DynamicResource[CompositionArgs]):
    """Login Secret of a provider that follows its external reference."""

    provider = LoginSecretProvider
