"""The kinds of provider that External Secrets Operator has and that have no client here, by their shapes.

`eso_shapes.json` is reduced from the schema of its CustomResourceDefinition v2.9.0, by
`tests/witness/eso_shapes.py`. A word there is a scalar or a selector, `!` a field that is needed. So the
rule of references holds for them, and they can be written for ESO; what else their code demands ESO tells.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, JsonValue, Strict, create_model

from components.secret_stores.model import (
    CaSelector,
    ProviderSpec,
    SecretSelector,
    Selector,
    ServiceAccountSelector,
    Shape,
)
from components.secret_stores.registry import RefRegister
from components.settings.words import Flag

_SHAPES: Final = Path(__file__).with_name("eso_shapes.json")
_NAMES: Final = {
    "aws": "AWS",
    "beyondtrustworkloadcredentials": "BeyondtrustWorkloadCredentials",
    "bitwardensecretsmanager": "BitwardenSecretsManager",
    "cloudrusm": "CloudruSM",
    "crd": "CRD",
    "dvls": "DVLS",
    "ibm": "IBM",
    "keepersecurity": "KeeperSecurity",
    "nebiusmysterybox": "NebiusMysterybox",
    "onepassword": "OnePassword",
    "onepasswordSDK": "OnePasswordSDK",
    "openBao": "OpenBao",
    "ovh": "OVHcloud",
    "passworddepot": "PasswordDepot",
    "secretserver": "SecretServer",
    "yandexcertificatemanager": "YandexCertificateManager",
    "yandexlockbox": "YandexLockbox",
}
"""Key of the embedded block → its name in ESO, where that is not the key with a capital."""

_WORDS: Final[Mapping[str, Any]] = {
    "text": str,
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
    """Add every kind of ESO that a register does not know yet; module: what a process imports to know it."""
    for key in _shapes():
        kinds.know(
            _NAMES.get(key, key.capitalize()), embedded=key, module=module, model=partial(_spec_of, key)
        )


@cache
def _shapes() -> Mapping[str, Mapping[str, Any]]:
    return json.loads(_SHAPES.read_text(encoding="utf-8"))


@cache
def _spec_of(key: str) -> type[ProviderSpec]:
    return _model(key, _shapes()[key], ProviderSpec)


def _model(name: str, shape: Mapping[str, Any], base: type[Any]) -> type[Any]:
    fields: dict[str, Any] = {}
    for index, (given, each) in enumerate(shape.items()):
        alias, of = given.removesuffix("!"), _type_of(given, each)
        needed = given.endswith("!")
        fields[f"field_{index}"] = (
            (of, Field(alias=alias)) if needed else (of | None, Field(default=None, alias=alias))
        )
    return create_model(name, __base__=base, **fields)


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
        case _:
            return _model(name, shape, Shape)
