"""What a type of Python is to programs in other languages: a part of the schema, and how its values are read.

Both are told by one walk over the type, so nothing is described that is not read, or read otherwise. A type
that this module cannot express is a TypeError when the schema is made.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, is_dataclass
from dataclasses import fields as fields_of
from enum import Enum
from functools import partial
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import pulumi
from pulumi.output import contains_unknowns
from pydantic import BaseModel, BeforeValidator, TypeAdapter, ValidationError

from components.dynamic import camel_case

Spec: TypeAlias = Mapping[str, Any]
Read: TypeAlias = Callable[[Any, str], Any]
"""Makes a value of what a program sent, and of where that stands among its inputs."""

ANY: Final[Spec] = {"$ref": "pulumi.json#/Any"}
_PLAIN: Final[Spec] = {"plain": True}
_URN: Final = "urn:pulumi:"


@dataclass(frozen=True, slots=True)
class Shape:
    """A type. optional: whether None is one of its values. given: makes the value that no program says."""

    spec: Spec
    read: Read
    optional: bool = False
    given: Callable[[], Any] | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A field of an object, by its name in Python and in programs. missing: makes what is not said."""

    name: str
    key: str
    shape: Shape
    secret: bool
    missing: Callable[[Mapping[str, Any]], Any] | None
    has_default: bool

    @property
    def required(self) -> bool:
        """Whether a program has to say it."""
        return not (self.has_default or self.shape.optional or self.missing)

    @property
    def spec(self) -> Spec:
        """Return it as the schema has it."""
        return {**self.shape.spec, **({"secret": True} if self.secret else {})}


class Shapes:
    """The types of a package.

    given: type → its value, which no program says, as it is the stack's. missing: a class and its field →
    what that is where nothing is said. unsaid: fields that only a program knows that declares several
    components together. `types` collects what is named on the way.
    """

    def __init__(
        self,
        package: str,
        *,
        given: Mapping[type, Callable[[], Any]],
        missing: Mapping[tuple[type, str], Callable[[Mapping[str, Any]], Any]],
        unsaid: Collection[str],
    ) -> None:
        self.types: dict[str, dict[str, Any]] = {}
        self._package, self._given, self._missing, self._unsaid = package, given, missing, unsaid
        self._named: dict[str, type] = {}
        self._parts: dict[type, tuple[Part, ...]] = {}

    def of(self, hint: Any) -> Shape:
        """Return what a type is; raises TypeError for one that other languages cannot have."""
        base, eventual, optional = _unwrapped(hint)
        if base in self._given:
            return Shape({}, _as_it_is, given=self._given[base])
        spec, read = self._expressed(base)
        if eventual or spec is ANY:
            return Shape(spec, partial(_eventually, read), optional)
        return Shape({**spec, **_PLAIN}, read, optional)

    def value_of(self, cls: type) -> Callable[[], Any] | None:
        """Return what gives the value of a type that no program says."""
        return self._given.get(cls)

    def parts(self, cls: type) -> tuple[Part, ...]:
        """Return the fields of a dataclass that programs may say, and those that the stack gives."""
        if cls not in self._parts:
            hints = hints_of(cls)
            self._parts[cls] = tuple(
                Part(
                    each.name,
                    camel_case(each.name),
                    self.of(hints[each.name]),
                    bool(each.metadata.get("secret")),
                    self._missing.get((cls, each.name)),
                    each.default is not MISSING or each.default_factory is not MISSING,
                )
                for each in fields_of(cls)
                if each.name not in self._unsaid
            )
        return self._parts[cls]

    def read(self, cls: type, value: Any, path: str = "") -> Any:
        """Make a dataclass of an object; raises InputPropertyError, which says where it cannot be.

        What is wrong with a secret is a RunError.
        """
        said = {key: one for key, one in _known(value, dict, path, "an object").items() if one is not None}
        parts = self.parts(cls)
        if strange := said.keys() - {part.key for part in parts if not part.shape.given}:
            raise _wrong(_below(path, min(strange)), "there is no such property")
        made: dict[str, Any] = {}
        for part in parts:
            if part.shape.given:
                made[part.name] = part.shape.given()
            elif part.key in said:
                try:
                    made[part.name] = part.shape.read(said[part.key], _below(path, part.key))
                except pulumi.InputPropertyError as error:
                    if not part.secret:
                        raise
                    # the genuine engine prints the value of an input that it is told of as one
                    raise pulumi.RunError(f"{error.property_path}: {error.reason}") from None
            elif part.missing:
                made[part.name] = part.missing(said)
            elif part.required:
                raise _wrong(_below(path, part.key), "it is required")
            elif not part.has_default:
                made[part.name] = None
        unsaid = (each for each in fields_of(cls) if each.name in self._unsaid)
        made |= {each.name: None for each in unsaid if each.default is each.default_factory is MISSING}
        return cls(**made)

    def object_spec(self, cls: type, parts: Iterable[tuple[str, Spec, bool]]) -> dict[str, Any]:
        """Return an object of a schema. parts: key, type, and whether it is required, of each property."""
        all_parts = [*parts]
        unsaid = map(camel_case, self._unsaid)
        told = descriptions(cls, [*(key for key, _, _ in all_parts), *unsaid])
        return {
            "type": "object",
            "description": summary(cls),
            "properties": {
                key: {**spec, **({"description": told[key]} if key in told else {})}
                for key, spec, _ in all_parts
            },
            "required": sorted(key for key, _, required in all_parts if required),
        }

    def _expressed(self, base: Any) -> tuple[Spec, Read]:
        origin, args = get_origin(base) or base, get_args(base)
        if base is Any or base is object:
            return ANY, _as_it_is
        if origin is Literal:
            return {"type": "string"}, partial(_one_of, args)
        if not isinstance(origin, type):
            raise TypeError(f"{base} cannot be told to other languages")
        if args:
            return self._of_parts(origin, args)
        return _SIMPLE.get(base) or self._of_a_class(base)

    def _of_parts(self, origin: type, args: Sequence[Any]) -> tuple[Spec, Read]:
        """Return an object by keys, or a list; what a function tells of a name is an object by these."""
        if origin is tuple and args[-1] is not Ellipsis:
            return {"type": "array", "items": ANY}, partial(_tuple, [self.of(each) for each in args])
        if issubclass(origin, Mapping | Callable):
            if isinstance(args[0], list) and len(args[0]) > 1:
                raise TypeError(f"{origin} of {args} cannot be told to other languages")
            inner = self.of(args[1])
            made = _mapping if issubclass(origin, Mapping) else _function
            return {"type": "object", "additionalProperties": inner.spec}, partial(made, inner)
        inner = self.of(args[0])
        made = partial(_list, inner, tuple if origin is tuple else list)
        return {"type": "array", "items": inner.spec}, made

    def _of_a_class(self, cls: type) -> tuple[Spec, Read]:
        if issubclass(cls, pulumi.ComponentResource):
            return {"$ref": f"#/resources/{vars(cls)['TYPE']}"}, partial(_component, cls)
        if issubclass(cls, pulumi.Resource):
            return ANY, _resource
        if issubclass(cls, Enum):
            values = [{"name": one.name.title(), "value": one.value} for one in cls]
            return self._name(cls, lambda: {"type": "string", "enum": values}), partial(_enum, cls)
        if issubclass(cls, BaseModel):
            return self._name(cls, lambda: self._noun(cls)), partial(_noun, TypeAdapter(cls))
        if is_dataclass(cls):
            parts = self.parts(cls)
            said = [(one.key, one.spec, one.required) for one in parts if not one.shape.given]
            return self._name(cls, lambda: self.object_spec(cls, said)), partial(self.read, cls)
        if is_typeddict(cls):
            hints = hints_of(cls)
            shapes = {key: self.of(hint) for key, hint in hints.items()}
            said = [(key, one.spec, not one.optional) for key, one in shapes.items()]
            return self._name(cls, lambda: self.object_spec(cls, said)), _as_it_is
        raise TypeError(f"{cls} cannot be told to other languages")

    def _noun(self, cls: type[BaseModel]) -> dict[str, Any]:
        """Return a part of the configuration; a value of it that has several forms may be anything."""
        parts: list[tuple[str, Spec, bool]] = []
        for name, field in cls.model_fields.items():
            spec: Spec = {**ANY, **_PLAIN}
            if not any(isinstance(each, BeforeValidator) for each in field.metadata):
                with contextlib.suppress(TypeError):
                    spec = self.of(field.annotation).spec
            told = {"description": field.description} if field.description else {}
            parts.append((field.alias or name, {**spec, **told}, field.is_required()))
        return self.object_spec(cls, parts)

    def _name(self, cls: type, described: Callable[[], dict[str, Any]]) -> Spec:
        token = f"{self._package}:index:{cls.__name__}"
        if self._named.setdefault(token, cls) is not cls:
            raise TypeError(f"two types are called {cls.__name__}: {self._named[token]} and {cls}")
        if token not in self.types:
            self.types[token] = {}
            self.types[token] = {"description": summary(cls), **described()}
        return {"$ref": f"#/types/{token}"}


def hints_of(of: Any) -> Mapping[str, Any]:
    """Return the annotations of a class or function; those of pulumi.Input name classes of its module."""
    return get_type_hints(of, localns={"Output": pulumi.Output, "T": Any}, include_extras=True)


def summary(cls: type) -> str:
    """Return what a docstring says of a class as a whole."""
    own = inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0]
    return " ".join(own.split())


def descriptions(cls: type, keys: Iterable[str]) -> Mapping[str, str]:
    """Return what a docstring says of properties: `name: text.`, or `one, another: text.` of several."""
    text = " ".join(inspect.cleandoc(cls.__doc__ or "").split())
    names = {_snake(key): key for key in keys}
    known = "|".join(sorted({*names, *names.values()}, key=len, reverse=True))
    if not known:
        return {}
    several = rf"(?:{known})(?:, (?:{known}))*"
    _, *told = re.split(rf"(?:(?<=[.;:] )|^)({several}): ", text)
    return {
        names.get(name, name): what.strip().rstrip(".;")
        for heads, what in zip(told[::2], told[1::2], strict=True)
        for name in heads.split(", ")
    }


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower()


def _unwrapped(hint: Any) -> tuple[Any, bool, bool]:
    """Return a type, whether its values may be outputs, and whether there may be none."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) is pulumi.Output:
        base, _, optional = _unwrapped(get_args(hint)[0])
        return base, True, optional
    args = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    eventual = any(get_origin(each) in (pulumi.Output, Awaitable) for each in args)
    values = [
        each for each in args if each is not NoneType and get_origin(each) not in (pulumi.Output, Awaitable)
    ]
    if not values:
        base, _, optional = _unwrapped(next(each for each in args if get_origin(each) is pulumi.Output))
        return base, True, optional or NoneType in args
    if len(values) > 1:
        raise TypeError(f"{hint} cannot be told to other languages: it has several forms")
    base, also, optional = (
        _unwrapped(values[0]) if get_origin(values[0]) is Annotated else (values[0], False, False)
    )
    return base, eventual or also, optional or NoneType in args


def _below(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _wrong(path: str, why: str) -> pulumi.InputPropertyError:
    return pulumi.InputPropertyError(path, why)


def _known(value: Any, kind: type | UnionType, path: str, what: str) -> Any:
    if isinstance(value, pulumi.Output) or contains_unknowns(value):
        raise _wrong(path, "it has to be known when the program runs: give a plain value, no output")
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise _wrong(path, f"it has to be {what}")
    return value


def _as_it_is(value: Any, _path: str) -> Any:
    return value


def _eventually(read: Read, value: Any, path: str) -> Any:
    if not isinstance(value, pulumi.Output) and not contains_unknowns(value):
        return read(value, path)
    known = pulumi.Output.from_input(value)

    def later(one: Any) -> Any:
        return None if one is None else read(one, path)

    return known if read is _as_it_is else known.apply(later)


def _text(value: Any, path: str) -> str:
    return _known(value, str, path, "a text")


def _flag(value: Any, path: str) -> bool:
    return _known(value, bool, path, "true or false")


def _whole(value: Any, path: str) -> int:
    number = _known(value, int | float, path, "a number")
    if number != int(number):
        raise _wrong(path, "it has to be a whole number")
    return int(number)


def _bytes(value: Any, path: str) -> bytes:
    try:
        return b64decode(_text(value, path), validate=True)
    except NoBase64:
        raise _wrong(path, "it has to be base64") from None


def _one_of(values: Sequence[str], value: Any, path: str) -> str:
    if _text(value, path) not in values:
        raise _wrong(path, f"it has to be one of {', '.join(values)}")
    return value


def _enum(cls: type[Enum], value: Any, path: str) -> Enum:
    return cls(_one_of([one.value for one in cls], value, path))


def _mapping(inner: Shape, value: Any, path: str) -> Mapping[str, Any]:
    if isinstance(value, pulumi.Output):
        return _Later(inner, value, path)
    if not isinstance(value, dict):
        raise _wrong(path, "it has to be an object")
    return {key: inner.read(one, _below(path, key)) for key, one in value.items()}


class _Later(Mapping[str, Any]):
    """An object that is an output as a whole: who knows a key gets its value, and nobody its keys."""

    def __init__(self, inner: Shape, value: pulumi.Output[Mapping[str, Any]], path: str) -> None:
        self._inner, self._value, self._path = inner, value, path

    def __getitem__(self, key: str) -> Any:
        return self._inner.read(self._value.apply(lambda known: known[key]), _below(self._path, key))

    def __iter__(self) -> Iterator[str]:
        raise _wrong(
            self._path, "its keys have to be known when the program runs: only values may be outputs"
        )

    def __len__(self) -> int:
        return len([*self])


def _function(inner: Shape, value: Any, path: str) -> Callable[[str], Any]:
    return _mapping(inner, value, path).__getitem__


def _list(inner: Shape, made: type, value: Any, path: str) -> Any:
    if isinstance(value, pulumi.Output) or not isinstance(value, list):
        raise _wrong(path, "it has to be a list that is known when the program runs")
    return made(inner.read(one, f"{path}[{index}]") for index, one in enumerate(value))


def _tuple(shapes: Sequence[Shape], value: Any, path: str) -> tuple[Any, ...]:
    if not isinstance(value, list) or len(value) != len(shapes):
        raise _wrong(path, f"it has to be a list of {len(shapes)}")
    return tuple(
        one.read(each, f"{path}[{at}]") for at, (one, each) in enumerate(zip(shapes, value, strict=True))
    )


def _noun(adapter: TypeAdapter[Any], value: Any, path: str) -> Any:
    try:
        return adapter.validate_python(_with_whole_numbers(_known(value, dict, path, "an object")))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise _wrong(".".join(map(str, (path, *first["loc"]))), first["msg"]) from None


def _with_whole_numbers(value: Any) -> Any:
    """Return a value whose whole numbers are such: on the wire there are floats alone."""
    if isinstance(value, dict):
        return {key: _with_whole_numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_with_whole_numbers(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _component(cls: type[pulumi.ComponentResource], value: Any, path: str) -> pulumi.ComponentResource:
    if not isinstance(value, cls):
        raise _wrong(path, f"it has to be a {cls.__name__} of this program")
    return value


def _resource(value: Any, path: str) -> pulumi.Resource:
    if isinstance(value, pulumi.Resource):
        return value
    if isinstance(value, str) and value.startswith(_URN):
        return pulumi.resource.DependencyResource(value)
    raise _wrong(path, "only a component can be named here; for any other resource use dependsOn")


_SIMPLE: Final[Mapping[Any, tuple[Spec, Read]]] = {
    str: ({"type": "string"}, _text),
    bytes: ({"type": "string"}, _bytes),
    bool: ({"type": "boolean"}, _flag),
    int: ({"type": "integer"}, _whole),
}
