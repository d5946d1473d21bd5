"""Provider kinds of External Secrets Operator for which this program knows only the schema of the spec.

`tests/witness/eso_shapes.py` reduces ESO's CustomResourceDefinitions v2.9.0 to `eso_shapes.json`. There, a
word is a scalar or a selector, `!` a required field, and `where` a value constrained by CEL rules. The rule
of references therefore applies to these kinds, the API server accepts what is accepted here, and they can be
compiled for ESO. Checks in ESO's code are in `eso_providers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, JsonValue, Strict, create_model, model_validator

from components.config.field_types import ConfigModel, Flag, config_error
from components.secret_stores.eso_providers import cel_program, facts_of, read_table
from components.secret_stores.model import (
    AS_ESO,
    CaBundle,
    CaSelector,
    ProviderSpec,
    SecretSelector,
    Selector,
    ServiceAccountSelector,
    as_document,
)
from components.secret_stores.registry import RefRegister

_Rule: TypeAlias = tuple[str, str]

_SHAPES: Final = "eso_shapes.json"
_WORDS: Final[Mapping[str, Any]] = {
    "text": str,
    "bytes": CaBundle,
    "flag": Flag,
    "whole": Annotated[int, Strict()],
    "number": Annotated[float, Strict()],
    "any": JsonValue,
    "secret": SecretSelector,
    "account": ServiceAccountSelector,
    "certificates": CaSelector,
    "object": Selector,
}


def know_all(kinds: RefRegister, module: str) -> None:
    """Register every ESO kind that is not known yet; `module` is the import that registers it."""
    for key in read_table(_SHAPES):
        kinds.know(str(facts_of(key)["name"]), embedded=key, module=module, model=partial(spec_of, key))


@cache
def spec_of(key: str) -> type[ProviderSpec]:
    """Return the spec model of a kind, by the key of its embedded block."""
    return _model(key, read_table(_SHAPES)[key], ProviderSpec)


def _model(name: str, shape: Any, base: type[Any]) -> type[Any]:
    rules: Sequence[_Rule] = ()
    if _is_marked(shape, "where"):
        _, shape, *rules = shape
    fields: dict[str, Any] = {}
    for index, (given, each) in enumerate(shape.items()):
        alias = given.removesuffix("!")
        _, said, default = each if _is_marked(each, "default") else (None, each, None)
        field = Field(alias=alias) if given.endswith("!") else Field(default=default, alias=alias)
        fields[f"field_{index}"] = _type_of(alias, said), field
    judge: Any = model_validator(mode="after")(partial(_judged, rules))
    return create_model(name, __base__=base, __validators__={"rules": judge} if rules else {}, **fields)


def _is_marked(shape: Any, mark: str) -> bool:
    return isinstance(shape, list) and shape[0] == mark


def _type_of(name: str, shape: Any) -> Any:
    match shape:
        case str():
            return _WORDS[shape]
        case ["list", each]:
            return tuple[_type_of(name, each), ...]
        case ["map", each]:
            return Mapping[str, _type_of(name, each)]
        case ["one of", *words]:
            return Literal[tuple(words)]
        case ["where", each, *rules] if not isinstance(each, dict):
            return Annotated[_type_of(name, each), AfterValidator(partial(_judged, rules))]
        case _:
            return _model(name, shape, ConfigModel)


def _judged(rules: Sequence[_Rule], given: Any) -> Any:
    """Return the value if it satisfies the rules."""
    said = as_document(given) if isinstance(given, ConfigModel) else given
    for rule, message in rules:
        if not cel_program(rule).eval(data={"self": said}).value():
            raise config_error(message, AS_ESO)
    return given
