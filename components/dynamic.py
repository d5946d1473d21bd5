"""Base of the dynamic providers: declarations that each provider makes as data, and shared behaviour.

The inputs of a provider are the fields of its arguments dataclass, in camelCase. A default other than None
also replaces an unset input. IDENTITY marks an input whose change requires replacement, SECRET an encrypted
one, NUMBER an integer that arrives as a float or string; a change of a `compare=False` input is ignored.
`outputs` are the added properties. Import-pure, like every module of a provider: state names their classes by
path. Requirements of the host: one process with four threads serves all classes and imports the module again,
so there is no `pulumi.Config()` and no resource at module level. `get_stack()` is not the stack. Numbers are
floats. Only `check` sees old and new inputs in a preview; `create` and `update` are not called there, so
every output is declared. `read` returns an empty id for a deleted resource: None crashes the host. Exceptions
reach the user as tracebacks. Import is impossible: the engine sends neither inputs nor state.
"""

from __future__ import annotations

import json
import sys
import traceback
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, fields
from functools import cache, wraps
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, ParamSpec, TypeAlias, TypeVar

import grpc
import pulumi
from pulumi import Input, Output, ResourceOptions
from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    Config,
    ConfigureRequest,
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    ResourceProvider,
    UpdateResult,
)
from pulumi.output import Unknown
from pulumi.runtime.proto.engine_pb2 import LogRequest, LogSeverity
from pulumi.runtime.proto.engine_pb2_grpc import EngineStub

from components.documents import read_json
from components.errors import CredfleetError, ExplainedError
from components.naming import HELD_AS, config_path, former_stack, is_namespace, is_object_name, stack_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Properties: TypeAlias = dict[str, Any]
ArgsT = TypeVar("ArgsT", bound="DataclassInstance")
ProviderT = TypeVar("ProviderT", bound="DynamicProvider")
P = ParamSpec("P")
T = TypeVar("T")

IDENTITY: Final[Mapping[str, bool]] = {"identity": True}
SECRET: Final[Mapping[str, bool]] = {"secret": True}
NUMBER: Final[Mapping[str, bool]] = {"number": True}

WARNING: Final = "warning: "

INCARNATION: Final = "incarnation"
"""Output that distinguishes a resource from its replacement: each gets a new incarnation."""

PREVIEW: Final = "__preview"
"""Input set by the program in a preview: only then can a check fail."""

_REFUSED: Final = "__refused"
"""Key of checked inputs: why create and update fail. `diff` must ignore such keys."""

FORESEEN: Final = "__foreseen"
"""Key of checked inputs, only in a preview: what the preview expects. `diff` must ignore this key too."""

IN_PREVIEW: Final[Mapping[str, str]] = {"checked": FORESEEN}

_HOLDERS: Final = frozenset({"holder", "owner"})
"""Inputs that name the holder."""

_NAMES: Final = _HOLDERS | {"tenant", "slot"}
"""Inputs that name the resource. A renamed one stays the same resource if `previously` has the old name."""


def without_traceback(method: Callable[P, T]) -> Callable[P, T]:
    """Let a method of a provider fail with only its message, as pulumi.RunError.

    The host of dynamic providers sends `traceback.format_exc()`, which only this limit shortens. A defect is
    reported by type and location: its message might quote a credential.
    """

    @wraps(method)
    def told(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except ExplainedError as error:
            text = f"{error.code}: {error}"
        except pulumi.RunError as error:
            text = str(error)
        except Exception as error:
            text = _defect(error)
        sys.tracebacklimit = 0
        raise pulumi.RunError(text)

    return told


def _defect(error: Exception) -> str:
    """Describe a defect without its message; `extract_tb` would apply the limit, `walk_tb` does not."""
    code, line = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)][-1]
    where = f"{'/'.join(code.co_filename.split('/')[-3:])}:{line} ({code.co_name})"
    return f"defect: an unexpected {type(error).__name__} at {where}\n→ report this line; it holds no values"


class DynamicProvider(ResourceProvider):
    """Base of dynamic providers; one instance serves all threads of the provider's process.

    `args`: dataclass of its inputs. `outputs`: added properties. `named_by`: properties that form the id.
    `refreshed`: inputs that a refresh updates. `delete_first`: whether a replacement deletes the old resource
    first. `fails_itself`: whether its failures fail its own update; otherwise the program rejects their
    subjects.
    """

    args: ClassVar[type[DataclassInstance]]
    outputs: ClassVar[Sequence[str]] = ()
    named_by: ClassVar[Sequence[str]]
    refreshed: ClassVar[Sequence[str]] = ()
    delete_first: ClassVar[bool] = False
    fails_itself: ClassVar[bool] = True

    _config: Config | None = None
    _latest: ClassVar[dict[tuple[type, str, str], str]] = {}

    def prepare(self, inputs: Properties, _olds: Properties) -> Properties:
        """Return normalized inputs, so that equal meanings are no change."""
        return inputs

    def failures(self, _inputs: Properties, _olds: Properties) -> Iterable[CheckFailure]:
        """Return what fails a preview, and prevents creating or updating this resource."""
        return ()

    def identity(self, _olds: Properties, _news: Properties) -> Collection[str]:
        """Return the inputs whose change requires replacement."""
        return [_key(each) for each in fields(self.args) if each.metadata.get("identity")]

    def is_stale(self, _olds: Properties, _news: Properties) -> bool:
        """Return whether an update is required although no input differs; called only then."""
        return False

    def lost(self, _olds: Properties, _news: Properties) -> Collection[str]:
        """Return inputs that refer to something deleted: the resource and its dependents are replaced."""
        return ()

    def name(self, _state: Properties) -> str:
        """Return the id of the resource, from its inputs and outputs."""
        return "/".join(str(_state[key]) for key in self.named_by)

    def create_resource(self, _props: Properties) -> Properties:
        """Create the object, and return the outputs. Must be safe to repeat after any failure."""
        return {}

    def update_resource(self, _id: str, _olds: Properties, _news: Properties) -> Properties:
        """Update the object, and return changed outputs."""
        return self.create_resource(_news)

    def read_resource(self, _id: str, _props: Properties) -> Properties | None:
        """Return changed properties; None if the resource no longer exists."""
        return {}

    def delete_resource(self, _id: str, _props: Properties) -> bool | None:
        """Delete the object. A provider without external objects has nothing to delete.

        Return False if it stays because a later incarnation of the resource has it.
        """

    def configured(self, key: str) -> str | None:
        """Return a configuration value of the stack; a key without a namespace is in `credfleet:`."""
        full = key if ":" in key else f"credfleet:{key}"
        return None if self._config is None else self._config.get(full)

    def beside(self, other: type[ProviderT]) -> ProviderT:
        """Return another provider of the same stack."""
        made = other()
        made._config = self._config
        return made

    def stack_of(self, props: Properties) -> str:
        """Return the stack that is the holder; empty if `heldAs` sets another one."""
        names = {stack_of(str(props.get(key))) for key in _HOLDERS}
        return "" if self.configured(HELD_AS) else max(names)

    def _renamed(self, olds: Properties, news: Properties) -> Iterator[CheckFailure]:
        """Reject holding under a stack name other than before, as after `pulumi stack rename`."""
        for key in _HOLDERS & olds.keys() & news.keys():
            if (stack := former_stack(olds[key], news[key])) is not None:
                where = f" --stack {own}" if (own := self.stack_of(news)) else ""
                yield CheckFailure(
                    "",
                    f"{config_path(HELD_AS)}: this stack holds accounts and Secrets as {stack}, its former"
                    f" name; nothing was changed\n→ pulumi config set {config_path(HELD_AS)} {stack}{where}",
                )

    @property
    def cluster(self) -> str | None:
        """Value of `credfleet:cluster`."""
        return self.configured("cluster")

    @property
    def cluster_of_pool(self) -> str | None:
        """Cluster of the pool that the stack claims from, in the same format; by default the stack's."""
        section = read_json(self.configured("accountPool") or "{}")
        elsewhere = section.get("from") if isinstance(section, dict) else None
        cluster = elsewhere.get("cluster") if isinstance(elsewhere, dict) else None
        return self.cluster if cluster is None else json.dumps(cluster)

    @without_traceback
    def configure(self, req: ConfigureRequest) -> None:
        """Store the configuration of the stack."""
        self._config = req.config

    @without_traceback
    def check(self, _olds: Properties, news: Properties) -> CheckResult:
        """Set defaults, and reject what cannot succeed, even in a preview.

        In an update, a failing check would stop everything. There, only the create or update of this resource
        fails.
        """
        inputs: Properties = {}
        for each in fields(self.args):
            default, given = _default(each), news.get(_key(each))
            if each.metadata.get("number") and given and not is_unknown(given):
                given = int(given)
            inputs[each.metadata.get("checked", _key(each))] = given if default is None else given or default
        inputs = self.prepare(inputs, _olds)
        if renamed := [*self._renamed(_olds, inputs)]:  # fails the update: nothing may move
            return CheckResult(inputs, renamed)
        failures = [*self.failures(inputs, _olds)]
        if not failures or news.get(PREVIEW):
            return CheckResult(inputs, failures)
        if not self.fails_itself:
            return CheckResult(inputs, [])
        told = (f"{each.property}: {each.reason}" if each.property else each.reason for each in failures)
        return CheckResult({**inputs, _REFUSED: "\n".join(told)}, [])

    @without_traceback
    def diff(self, _id: str, _olds: Properties, _news: Properties) -> DiffResult:
        """Compare the inputs, then the actual state with the recorded one.

        A rejected resource is an update, even if it required replacement, so that nothing is deleted before
        it.
        """
        if _news.get(_REFUSED):
            return DiffResult(changes=True, replaces=[], stables=[], delete_before_replace=False)
        compared = [_key(each) for each in fields(self.args) if each.compare]
        changed = [key for key in compared if _olds.get(key) != _news.get(key)]
        identity, lost = self.identity(_olds, _news), self.lost(_olds, _news)
        if is_called_otherwise(_olds, _news):
            identity = {*identity} - _NAMES
        return DiffResult(
            changes=bool(changed or lost) or self.is_stale(_olds, _news),
            replaces=[*(key for key in changed if key in identity), *lost],
            stables=[],
            delete_before_replace=self.delete_first,
        )

    @without_traceback
    def create(self, props: Properties) -> CreateResult:
        """Create the resource with its own incarnation id."""
        _go_on(props)
        is_deleted = type(self).delete_resource is not DynamicProvider.delete_resource
        own = {INCARNATION: uuid.uuid4().hex} if is_deleted else {}  # not required otherwise
        state = {**pick(props, keys(self.args)), **own, **self.create_resource({**props, **own})}
        id_ = self.name(state)
        if is_deleted:
            self._latest[self._identified(id_, state)] = own[INCARNATION]
        return CreateResult(id_, state)

    @without_traceback
    def read(self, id_: str, props: Properties) -> ReadResult:
        """Read the resource; a deleted one has no id."""
        found = self.read_resource(id_, props)
        if found is None:
            return ReadResult("", {})
        inputs = pick(props, keys(self.args))
        taken_over = {key: found[key] for key in self.refreshed if key in found}
        return ReadResult(id_, {**inputs, **self._known(props), **found}, {**inputs, **taken_over})

    @without_traceback
    def update(self, _id: str, _olds: Properties, _news: Properties) -> UpdateResult:
        """Update the resource; outputs that it does not change are kept."""
        _go_on(_news)
        outputs = {
            **self._known(_olds),
            **self.update_resource(_id, _olds, {**_news, **pick(_olds, [INCARNATION])}),
        }
        return UpdateResult({**pick(_news, keys(self.args)), **outputs})

    @without_traceback
    def delete(self, _id: str, _props: Properties) -> None:
        """Delete the resource, unless it was replaced by one with the same id.

        A replacement is created first, even with equal inputs (`pulumi up --replace`). Objects that carry
        their incarnation are protected in later runs too.
        """
        own = _props.get(INCARNATION)
        if self._latest.get(self._identified(_id, _props), own) != own:
            return
        if self.delete_resource(_id, _props) is False:
            log(f"{_id} stays: another resource of its owner has written it since")

    def _identified(self, id_: str, props: Properties) -> tuple[type, str, str]:
        """Return the key shared by a resource and its replacement with the same inputs."""
        identity = [props.get(_key(each)) for each in fields(self.args) if each.metadata.get("identity")]
        return type(self), id_, json.dumps(identity, sort_keys=True)

    def _known(self, props: Properties) -> Properties:
        """Return the existing outputs: one that an older version lacked is no change."""
        return {key: props[key] for key in (*self.outputs, INCARNATION) if key in props}


_MISSING: Final = ("absent", "keys-missing")
"""Codes of errors about a source that does not exist or lacks keys."""


class FollowingProvider(DynamicProvider):
    """Provider of an object that follows a source. Its outputs include a digest."""

    def is_current(self, props: Properties, digest: str) -> bool:
        """Return whether the written object, with this digest, matches its source; raises CredfleetError."""
        raise NotImplementedError

    def is_predicted_otherwise(self, _props: Properties) -> bool:
        """Return whether the source will change in this update; might raise CredfleetError."""
        return False

    def is_stale(self, olds: Properties, news: Properties) -> bool:
        """Return whether the source differs, or will; if it cannot be read, there is no change.

        A missing source is a change: the update then reports it and fails.
        """
        if is_unknown(news):
            return False
        try:
            is_current = self.is_current({**news, **pick(olds, [INCARNATION])}, str(olds.get("digest")))
            return not is_current or self.is_predicted_otherwise(news)
        except CredfleetError as error:
            recorded = olds.get(FORESEEN)  # set only in a keyless review: what the last update wrote
            is_otherwise = recorded is not None and recorded != news.get(FORESEEN)
            return is_otherwise or error.code in _MISSING


class DynamicResource(Resource, Generic[ArgsT]):
    """Resource of a DynamicProvider. Its annotations are the properties for programs, in snake_case."""

    provider: ClassVar[type[DynamicProvider]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__(module="credfleet", name=cls.__name__)
        for attribute in cls.__annotations__:
            if (key := camel_case(attribute)) != attribute:
                setattr(cls, attribute, property(attrgetter(key)))

    def __init__(self, name: str, args: ArgsT, opts: ResourceOptions | None = None) -> None:
        props: dict[str, Input[Any]] = {
            _key(each): Output.secret(value) if each.metadata.get("secret") else value
            for each in fields(args)
            for value in [getattr(args, each.name)]
        }
        if pulumi.runtime.is_dry_run():
            props[PREVIEW] = True
        super().__init__(
            self.provider(), name, {**props, **dict.fromkeys((*self.provider.outputs, INCARNATION))}, opts
        )


def _go_on(inputs: Properties) -> None:
    """Raise RunError if the check rejected the inputs."""
    if refused := inputs.get(_REFUSED):
        raise pulumi.RunError(refused)


def camel_case(name: str) -> str:
    """Return a property name in Pulumi's camelCase."""
    first, *more = name.split("_")
    return first + "".join(word.capitalize() for word in more)


@cache
def keys(args: type[DataclassInstance]) -> tuple[str, ...]:
    """Return the input names of an arguments dataclass."""
    return tuple(_key(each) for each in fields(args))


def pick(props: Properties, names: Iterable[str]) -> Properties:
    """Return these properties; a missing one is None."""
    return {name: props.get(name) for name in names}


def is_unknown(value: Any) -> bool:
    """Return whether a value, or a nested one, is known only during the update."""
    match value:
        case dict():
            return any(is_unknown(each) for each in value.values())
        case list():
            return any(is_unknown(each) for each in value)
        case _:
            return isinstance(value, Unknown)


def name_errors(
    inputs: Properties, namespaces: Sequence[str], objects: Sequence[str]
) -> Iterator[CheckFailure]:
    """Yield failures for known inputs that are not valid names of a namespace or Secret.

    Absent inputs count as unknown: the CLI passes outputs of failed resources like this in an update.
    """
    for key in namespaces:
        if not (inputs[key] is None or is_unknown(inputs[key]) or is_namespace(str(inputs[key]))):
            yield CheckFailure(key, "it is not a namespace; use up to 63 of a-z, 0-9 and, inside, '-'")
    for key in objects:
        if not (inputs[key] is None or is_unknown(inputs[key]) or is_object_name(str(inputs[key]))):
            yield CheckFailure(key, "it is not a name of a Secret; use up to 253 of a-z, 0-9, '-' and '.'")


def is_called_otherwise(olds: Properties, news: Properties) -> bool:
    """Return whether it was held under a former name that the program states."""
    return any(olds.get(key) in (news.get("previously") or ()) for key in _HOLDERS)


def log(text: str) -> None:
    """Print a message to the user of the update; text after WARNING is a warning.

    The engine shows a provider's output as information; for warnings, the process gets the engine's address
    as an argument. Without it they are printed.
    """
    if text.startswith(WARNING) and len(sys.argv) > 1:
        message = LogRequest(severity=LogSeverity.WARNING, message=text.removeprefix(WARNING))
        with suppress(grpc.RpcError), grpc.insecure_channel(sys.argv[-1]) as channel:
            EngineStub(channel).Log(message)
            return
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _key(each: Field[Any]) -> str:
    return camel_case(each.name)


def _default(each: Field[Any]) -> Any:
    if each.default_factory is not MISSING:
        return each.default_factory()
    return None if each.default is MISSING else each.default
