"""Reads and pushes of the direct back end as dynamic resources: bytes stay in the cluster and this process.

Neither inputs nor outputs hold a byte of a secret: the outputs are where it is, a keyed digest of it, and the
version of what it was made from. The path of this module and the names of its classes are written into the
state of stacks; they never move. Import-pure, and light: the models are imported by the first call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pulumi import Input, Output, ResourceOptions
from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    ConfigureRequest,
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    ResourceProvider,
    UpdateResult,
)
from pulumi.output import Unknown

from components.dynamic import Properties, compared, is_unknown, kept, shortened
from components.errors import CredfleetError
from components.importing import ALONE

if TYPE_CHECKING:
    from pulumi.dynamic import Config

    from components.secret_stores.carried import CarriedPush, CarriedRead

_WAY: Final = ("store", "provider", "labels")
_READ_IDENTITY: Final = ("namespace", "target", "owner")
_READ_INPUTS: Final = (*_READ_IDENTITY, "read", *_WAY)
_READ_OUTPUTS: Final = ("reference", "digest", "sourceVersion")
_PUSH_IDENTITY: Final = ("namespace", "owner")
_PUSH_INPUTS: Final = (*_PUSH_IDENTITY, "push", *_WAY)
_PUSH_OUTPUTS: Final = ("places", "digest", "sourceVersion")

_LOGIN: Final = frozenset({"auth", "authRef", "authSecretRef", "serviceAccountRef", "caProvider", "caBundle"})
"""Fields of providers' specs that say who asks, not where."""

_MOMENTARY: Final = frozenset({"unreachable", "not-allowed"})
"""What a preview does not fail on: the update tells it, if it lasts."""


class _StoreProvider(ResourceProvider):
    """A thin shell; one instance serves all threads of the provider's process."""

    _config: Config | None = None

    def configure(self, req: ConfigureRequest) -> None:
        """Keep the stack's configuration: which cluster, and where Google is."""
        self._config = req.config

    def delete(self, _id: str, _props: Properties) -> None:
        """Remove what was made, if it is still ours."""
        with shortened():
            self._carried(_props).remove()

    def _carried(self, props: Properties) -> CarriedRead | CarriedPush:
        raise NotImplementedError

    def _configured(self, key: str) -> str | None:
        return None if self._config is None else self._config.get(key)

    def _failures(self, inputs: Properties) -> Iterator[CheckFailure]:
        """Tell what the rule refuses, before anybody is asked; then what is in the way now."""
        if isinstance(inputs["namespace"], Unknown):
            return
        try:
            carried = self._carried(_supposed(inputs))
            carried.admitted()
        except CredfleetError as error:
            if error.code not in _MOMENTARY:
                yield CheckFailure("", str(error))
            return
        if is_unknown(inputs):
            return
        try:
            obstacles = carried.obstacles()
        except CredfleetError:
            return
        for obstacle in obstacles:
            yield CheckFailure("", str(obstacle))

    def _is_current(self, props: Properties, known: str) -> bool:
        if is_unknown(props):
            return True
        try:
            return self._carried(props).is_current(known)
        except CredfleetError:
            return True


class SecretReadProvider(_StoreProvider):
    """Makes Secrets of what stores say."""

    def check(self, _olds: Properties, news: Properties) -> CheckResult:
        """Refuse, in a preview too, what the rule of references refuses, and a target that is taken."""
        inputs = kept(news, _READ_INPUTS)
        return CheckResult(inputs, [*self._failures(inputs)])

    def diff(self, _id: str, _olds: Properties, _news: Properties) -> DiffResult:
        """Compare every input; then what the store says now with what is known of the target."""
        return compared(
            _olds,
            _news,
            _READ_INPUTS,
            identity=_READ_IDENTITY,
            otherwise=lambda: not self._is_current(_news, str(_olds.get("digest"))),
        )

    def create(self, props: Properties) -> CreateResult:
        """Make the Secret; run again after any failure it finds it, and takes it as its own."""
        return CreateResult(f"{props['namespace']}/{props['target']}", self._written(props))

    def read(self, id_: str, props: Properties) -> ReadResult:
        """Tell what is in the Secret, by digest; one that is gone, or somebody else's, has no id."""
        with shortened():
            found = self._carried(props).digest()
        if found is None:
            return ReadResult("", {})
        outputs = {**kept(props, _READ_INPUTS + _READ_OUTPUTS), "digest": found}
        return ReadResult(id_, outputs, kept(props, _READ_INPUTS))

    def update(self, _id: str, _olds: Properties, _news: Properties) -> UpdateResult:
        """Make the Secret again."""
        return UpdateResult(self._written(_news))

    def _written(self, props: Properties) -> Properties:
        with shortened():
            done = self._carried(props).write()
        return {
            **kept(props, _READ_INPUTS),
            "reference": f"{props['namespace']}/{props['target']}",
            "digest": done.digest,
            "sourceVersion": done.source_version,
        }

    def _carried(self, props: Properties) -> CarriedRead:
        with ALONE:
            from components.secret_stores.carried import CarriedRead

        return CarriedRead(props, self._configured)


class SecretPushProvider(_StoreProvider):
    """Writes keys of Secrets to stores."""

    def check(self, _olds: Properties, news: Properties) -> CheckResult:
        """Refuse, in a preview too, what the rule of references refuses, and a place that is taken."""
        inputs = kept(news, _PUSH_INPUTS)
        return CheckResult(inputs, [*self._failures(inputs)])

    def diff(self, _id: str, _olds: Properties, _news: Properties) -> DiffResult:
        """Compare every input; then what the Secrets and the store say now with what is known."""
        moved = [key for key in ("store", "provider") if _address(key, _olds) != _address(key, _news)]
        return compared(
            _olds,
            _news,
            _PUSH_INPUTS,
            identity=(*_PUSH_IDENTITY, *moved),
            otherwise=lambda: not self._is_current(_news, str(_olds.get("digest"))),
            delete_first=True,
        )

    def create(self, props: Properties) -> CreateResult:
        """Push; run again after any failure it finds what it wrote, and takes it as its own."""
        return CreateResult(f"{props['namespace']}/{props['push']['name']}", self._written(props))

    def read(self, id_: str, props: Properties) -> ReadResult:
        """Tell whether anything of the push is still in the store; else it has no id."""
        with shortened():
            there = self._carried(props).is_there()
        if not there:
            return ReadResult("", {})
        return ReadResult(id_, kept(props, _PUSH_INPUTS + _PUSH_OUTPUTS), kept(props, _PUSH_INPUTS))

    def update(self, _id: str, _olds: Properties, _news: Properties) -> UpdateResult:
        """Push again, and remove what is pushed no more."""
        return UpdateResult(self._written(_news, _olds))

    def _written(self, props: Properties, olds: Properties | None = None) -> Properties:
        with shortened():
            carried = self._carried(props)
            done = carried.write([] if olds is None else self._carried(olds).places)
        return {
            **kept(props, _PUSH_INPUTS),
            "places": [str(each) for each in carried.places],
            "digest": done.digest,
            "sourceVersion": done.source_version,
        }

    def _carried(self, props: Properties) -> CarriedPush:
        with ALONE:
            from components.secret_stores.carried import CarriedPush

        return CarriedPush(props, self._configured)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretReadArgs:
    """A Secret `target` of a namespace, made of values of a store.

    owner: who wants it, the same text whenever the program runs. read: {name, store, data}, as ExternalSecret
    has them. store, provider: as `direct.document_of` writes them; provider is None for an embedded one.
    labels: of the namespace, as far as the stack declares them; others are looked up.
    """

    namespace: Input[str]
    target: str
    owner: str
    read: Mapping[str, Any]
    store: Mapping[str, Any]
    provider: Mapping[str, Any] | None
    labels: Mapping[str, str]


class SecretRead(Resource, module="credfleet", name="SecretRead"):
    """A Secret that follows what a store says."""

    reference: Output[str]
    digest: Output[str]

    def __init__(self, name: str, args: SecretReadArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__(
            SecretReadProvider(),
            name,
            {
                "namespace": args.namespace,
                "target": args.target,
                "owner": args.owner,
                "read": args.read,
                "store": args.store,
                "provider": args.provider,
                "labels": args.labels,
                **dict.fromkeys(_READ_OUTPUTS),
            },
            opts,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretPushArgs:
    """Keys of Secrets of a namespace, written to a store.

    push: {name, store, data, updatePolicy, deletionPolicy}, as PushSecret has them. The others are those of
    SecretReadArgs.
    """

    namespace: Input[str]
    owner: str
    push: Mapping[str, Any]
    store: Mapping[str, Any]
    provider: Mapping[str, Any] | None
    labels: Mapping[str, str]


class SecretPush(Resource, module="credfleet", name="SecretPush"):
    """Values of a store that follow Secrets of the cluster."""

    places: Output[list[str]]
    digest: Output[str]

    def __init__(self, name: str, args: SecretPushArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__(
            SecretPushProvider(),
            name,
            {
                "namespace": args.namespace,
                "owner": args.owner,
                "push": args.push,
                "store": args.store,
                "provider": args.provider,
                "labels": args.labels,
                **dict.fromkeys(_PUSH_OUTPUTS),
            },
            opts,
        )


def _address(key: str, props: Properties) -> Any:
    """Tell where a store or provider keeps secrets, without what says who asks."""
    return _without_login(props["store"]["spec"].get("provider") if key == "store" else props.get(key))


def _without_login(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_login(each) for key, each in value.items() if key not in _LOGIN}
    return value


def _supposed(value: Any) -> Any:
    """Put a name that could be where one is known only at the update."""
    match value:
        case dict():
            return {key: _supposed(each) for key, each in value.items()}
        case list():
            return [_supposed(each) for each in value]
        case Unknown():
            return "unknown"
        case _:
            return value
