"""The base of the dynamic providers: what each of them says once, as data, and what all do alike.

The inputs of a provider are the fields of its dataclass of arguments, in camelCase: a field with a default
that is not None has it also when the program says nothing, IDENTITY marks one whose change makes another
resource, SECRET one that travels encrypted, NUMBER a whole one that comes as a float or a text, and
`compare=False` one whose change is none. `outputs` is what the provider adds to them. Import-pure, like every
module of a provider: state names their classes by path.

What the host demands of each: one process with four threads serves all classes and imports the module again,
so there is no `pulumi.Config()` and no resource at module level. `get_stack()` is not the stack. Numbers
arrive as floats. Only `check` sees old and new inputs in a preview; `create` and `update` are not called
there, so every output is declared. A `read` of what is gone returns an empty id: None crashes the host. An
exception reaches the user as a traceback. Import is impossible: the engine sends neither inputs nor state.
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
"""The output that tells a resource from the one that takes its place: each has an incarnation of its own."""

PREVIEW: Final = "__preview"
"""Of what a program passes: it is a preview, in which alone a check may fail."""

_REFUSED: Final = "__refused"
"""Of inputs that were checked: why there is neither a create nor an update. Plans pass over such keys."""

FORESEEN: Final = "__foreseen"
"""Of inputs that were checked, in a preview alone: what it foresees. A plan has to pass over this key too."""

IN_PREVIEW: Final[Mapping[str, str]] = {"checked": FORESEEN}

_HOLDERS: Final = frozenset({"holder", "owner"})
"""The inputs that say in whose name something is held."""

_NAMES: Final = _HOLDERS | {"tenant", "slot"}
"""The inputs that say what something is called: another name is no other resource if `previously` has it."""


def without_traceback(method: Callable[P, T]) -> Callable[P, T]:
    """Let a method of a provider fail in its own words alone, as pulumi.RunError.

    The host of dynamic providers sends `traceback.format_exc()`, which only this limit shortens. A defect is
    told by its type and where it is: its own text may quote a credential.
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
    """Tell a defect without its text; `extract_tb` would keep to the limit, `walk_tb` does not."""
    code, line = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)][-1]
    where = f"{'/'.join(code.co_filename.split('/')[-3:])}:{line} ({code.co_name})"
    return f"defect: an unexpected {type(error).__name__} at {where}\n→ report this line; it holds no values"


class DynamicProvider(ResourceProvider):
    """A dynamic provider around what it manages; one instance serves all threads of the provider's process.

    args: the dataclass of its inputs. outputs: the properties it adds. named_by: the properties that make its
    id. refreshed: inputs a refresh takes over as it finds them. delete_first: whether a replaced one goes
    before the one that takes its place is made. fails_itself: whether its failures are its own in an update;
    otherwise the program refuses what they are of.
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
        """Return the inputs in their one form, so that what means the same is no change."""
        return inputs

    def failures(self, _inputs: Properties, _olds: Properties) -> Iterable[CheckFailure]:
        """Return all that keeps a preview from going on, and this resource from being made or changed."""
        return ()

    def identity(self, _olds: Properties, _news: Properties) -> Collection[str]:
        """Return the inputs whose change makes another resource."""
        return [_key(each) for each in fields(self.args) if each.metadata.get("identity")]

    def is_stale(self, _olds: Properties, _news: Properties) -> bool:
        """Whether there is something to update although no input differs; asked only then."""
        return False

    def lost(self, _olds: Properties, _news: Properties) -> Collection[str]:
        """Return the inputs that name nothing any more: another resource is made, and what is tied to it."""
        return ()

    def name(self, _state: Properties) -> str:
        """Return the id of the resource, from its inputs and outputs."""
        return "/".join(str(_state[key]) for key in self.named_by)

    def create_resource(self, _props: Properties) -> Properties:
        """Make what is managed, and return the outputs. Run again after any failure, it finishes it."""
        return {}

    def update_resource(self, _id: str, _olds: Properties, _news: Properties) -> Properties:
        """Change what is managed, and return the outputs that are other ones now."""
        return self.create_resource(_news)

    def read_resource(self, _id: str, _props: Properties) -> Properties | None:
        """Return the properties that are different by now; None when the resource is gone."""
        return {}

    def delete_resource(self, _id: str, _props: Properties) -> bool | None:
        """Take away what is managed. A provider that keeps nothing but its state has nothing to remove.

        False when it stays, because a later incarnation of the same resource has it by now.
        """

    def configured(self, key: str) -> str | None:
        """Return a value of the stack's configuration; a key without a namespace is of `credfleet:`."""
        full = key if ":" in key else f"credfleet:{key}"
        return None if self._config is None else self._config.get(full)

    def beside(self, other: type[ProviderT]) -> ProviderT:
        """Return another provider of the same stack."""
        made = other()
        made._config = self._config
        return made

    def stack_of(self, props: Properties) -> str:
        """Return the stack that holds something in its own name; empty where `heldAs` gives another."""
        names = {stack_of(str(props.get(key))) for key in _HOLDERS}
        return "" if self.configured(HELD_AS) else max(names)

    def _renamed(self, olds: Properties, news: Properties) -> Iterator[CheckFailure]:
        """Refuse to hold something under another stack's name than before, as after `pulumi stack rename`."""
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
        """Which cluster is meant, as `credfleet:cluster` says it."""
        return self.configured("cluster")

    @property
    def cluster_of_pool(self) -> str | None:
        """Where the pool is whose accounts the stack claims, in the same form; here unless it says so."""
        section = read_json(self.configured("accountPool") or "{}")
        elsewhere = section.get("from") if isinstance(section, dict) else None
        cluster = elsewhere.get("cluster") if isinstance(elsewhere, dict) else None
        return self.cluster if cluster is None else json.dumps(cluster)

    @without_traceback
    def configure(self, req: ConfigureRequest) -> None:
        """Keep the configuration of the stack."""
        self._config = req.config

    @without_traceback
    def check(self, _olds: Properties, news: Properties) -> CheckResult:
        """Fill in what was left out, and refuse what cannot become true, already in a preview.

        An update would end with a check that fails, whatever else it could do: there, the create or update
        of this one resource is refused.
        """
        inputs: Properties = {}
        for each in fields(self.args):
            default, given = _default(each), news.get(_key(each))
            if each.metadata.get("number") and given and not is_unknown(given):
                given = int(given)
            inputs[each.metadata.get("checked", _key(each))] = given if default is None else given or default
        inputs = self.prepare(inputs, _olds)
        if renamed := [*self._renamed(_olds, inputs)]:  # ends the update: nothing is to move to another name
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
        """Compare the inputs, then what is there with what is known of it.

        What is refused is an update, even of what would be replaced, so that nothing is deleted before it.
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
        """Make the resource, as an incarnation of its own."""
        _go_on(props)
        is_deleted = type(self).delete_resource is not DynamicProvider.delete_resource
        own = {INCARNATION: uuid.uuid4().hex} if is_deleted else {}  # else there is nothing to tell apart
        state = {**pick(props, keys(self.args)), **own, **self.create_resource({**props, **own})}
        id_ = self.name(state)
        if is_deleted:
            self._latest[self._identified(id_, state)] = own[INCARNATION]
        return CreateResult(id_, state)

    @without_traceback
    def read(self, id_: str, props: Properties) -> ReadResult:
        """Look at the resource; one that is gone has no id."""
        found = self.read_resource(id_, props)
        if found is None:
            return ReadResult("", {})
        inputs = pick(props, keys(self.args))
        taken_over = {key: found[key] for key in self.refreshed if key in found}
        return ReadResult(id_, {**inputs, **self._known(props), **found}, {**inputs, **taken_over})

    @without_traceback
    def update(self, _id: str, _olds: Properties, _news: Properties) -> UpdateResult:
        """Change the resource; what it does not change of the outputs stays as it is."""
        _go_on(_news)
        outputs = {
            **self._known(_olds),
            **self.update_resource(_id, _olds, {**_news, **pick(_olds, [INCARNATION])}),
        }
        return UpdateResult({**pick(_news, keys(self.args)), **outputs})

    @without_traceback
    def delete(self, _id: str, _props: Properties) -> None:
        """Remove the resource, unless it was created again: then this is what is left of it before.

        A replacement is created first, also one with the same inputs (`pulumi up --replace`). Objects that
        carry their incarnation are spared in a later run as well.
        """
        own = _props.get(INCARNATION)
        if self._latest.get(self._identified(_id, _props), own) != own:
            return
        if self.delete_resource(_id, _props) is False:
            log(f"{_id} stays: another resource of its owner has written it since")

    def _identified(self, id_: str, props: Properties) -> tuple[type, str, str]:
        """Return what a resource and the one that takes its place with the same inputs have in common."""
        identity = [props.get(_key(each)) for each in fields(self.args) if each.metadata.get("identity")]
        return type(self), id_, json.dumps(identity, sort_keys=True)

    def _known(self, props: Properties) -> Properties:
        """Return the outputs that there are: one that an older version did not have is no change."""
        return {key: props[key] for key in (*self.outputs, INCARNATION) if key in props}


_MISSING: Final = ("absent", "keys-missing")
"""Codes of what a source was seen to lack."""


class FollowingProvider(DynamicProvider):
    """A provider of what follows a source: what that says now may be a change. Its outputs have a digest."""

    def is_current(self, props: Properties, digest: str) -> bool:
        """Whether what was written, of this digest, is what the source says now; may raise CredfleetError."""
        raise NotImplementedError

    def is_predicted_otherwise(self, _props: Properties) -> bool:
        """Whether the source will say something else after this very update; may raise CredfleetError."""
        return False

    def is_stale(self, olds: Properties, news: Properties) -> bool:
        """Whether the source says something else, or will; what cannot be seen is no change.

        What is seen to be missing is one: the update then says so, and fails.
        """
        if is_unknown(news):
            return False
        try:
            is_current = self.is_current({**news, **pick(olds, [INCARNATION])}, str(olds.get("digest")))
            return not is_current or self.is_predicted_otherwise(news)
        except CredfleetError as error:
            recorded = olds.get(FORESEEN)  # by a review without keys alone: what the last update wrote
            is_otherwise = recorded is not None and recorded != news.get(FORESEEN)
            return is_otherwise or error.code in _MISSING


class DynamicResource(Resource, Generic[ArgsT]):
    """A resource of a DynamicProvider. Its annotations are the properties a program reads, in snake_case."""

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
    """Refuse what the check refused; raises RunError."""
    if refused := inputs.get(_REFUSED):
        raise pulumi.RunError(refused)


def camel_case(name: str) -> str:
    """Return the name of a property as Pulumi writes it."""
    first, *more = name.split("_")
    return first + "".join(word.capitalize() for word in more)


@cache
def keys(args: type[DataclassInstance]) -> tuple[str, ...]:
    """Return the inputs that a dataclass of arguments stands for."""
    return tuple(_key(each) for each in fields(args))


def pick(props: Properties, names: Iterable[str]) -> Properties:
    """Return these properties; an absent one is None."""
    return {name: props.get(name) for name in names}


def is_unknown(value: Any) -> bool:
    """Whether a value, or one inside an object or list, is known only at the update."""
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
    """Return which of the known inputs cannot be what they have to name: a namespace, or a Secret.

    What is absent is unknown, too: so the CLI passes in an update what a failed resource would have told.
    """
    for key in namespaces:
        if not (inputs[key] is None or is_unknown(inputs[key]) or is_namespace(str(inputs[key]))):
            yield CheckFailure(key, "it is not a namespace; use up to 63 of a-z, 0-9 and, inside, '-'")
    for key in objects:
        if not (inputs[key] is None or is_unknown(inputs[key]) or is_object_name(str(inputs[key]))):
            yield CheckFailure(key, "it is not a name of a Secret; use up to 253 of a-z, 0-9, '-' and '.'")


def is_called_otherwise(olds: Properties, news: Properties) -> bool:
    """Whether it was held under a name that the program gives as a former one of the same thing."""
    return any(olds.get(key) in (news.get("previously") or ()) for key in _HOLDERS)


def log(text: str) -> None:
    """Say something to the person who runs the update; what begins with WARNING is a warning.

    What a provider prints, the engine shows as information; for warnings its process is started with the
    engine's address. One without an engine prints them.
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
