"""All kinds of provider that External Secrets Operator has: their selectors, and where each is read.

That the shapes are those of its definition is asked of the definition, where that lies beside the project.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

import pytest
import yaml
from pydantic import BaseModel

from components.errors import CredfleetError, Problem
from components.secret_stores.convert import convert
from components.secret_stores.explain import Ready
from components.secret_stores.kinds import KINDS
from components.secret_stores.model import CaSelector, ProviderSpec, SecretStore, Selector
from components.secret_stores.referent import selectors
from components.secret_stores.registry import Kind, RefRegister
from tests.support.stores import cluster_store, store_in, told
from tests.witness.eso_shapes import providers, reduced

ROOT: Final = Path(__file__).parents[3]
SHAPES: Final[dict[str, Any]] = json.loads((ROOT / "components/secret_stores/eso_shapes.json").read_text())
DEFINITION: Final = ROOT.parent / "shared/data/external-secrets-crds/secretstores.yaml"
SELECTORS: Final = ("secret", "account", "certificates", "object")


def kind_of(key: str, kinds: RefRegister = KINDS) -> Kind:
    found = kinds.embedded(key)
    assert not isinstance(found, Problem)
    return found


SPELT: Final = {key for key in SHAPES if not kind_of(key).by_shape}
"""Kinds whose specs are written out in `specs.py`."""


def selectors_of(shape: Any, path: str = "") -> Iterator[str]:
    """The paths of all selectors of a shape."""
    match shape:
        case str() if shape in SELECTORS:
            yield path
        case dict():
            for name, each in shape.items():
                yield from selectors_of(each, f"{path}.{name.removesuffix('!')}")
        case ["list" | "map", each]:
            yield from selectors_of(each, path)
        case _:
            pass


def selectors_in(model: Any, path: str = "") -> Iterator[str]:
    """The paths of all selectors that a model can have."""
    for part in (model, *get_args(model)):
        if isinstance(part, type) and issubclass(part, Selector):
            yield path
        elif isinstance(part, type) and issubclass(part, BaseModel):
            for name, field in part.model_fields.items():
                yield from selectors_in(field.annotation, f"{path}.{field.alias or name}")
        elif part is not model:
            yield from selectors_in(part, path)


def whole(shape: Any, namespace: str | None, certificates: str | None) -> Any:
    """A spec that says all a shape has."""
    match shape:
        case str():
            return {
                **{"text": "x", "flag": True, "whole": 1, "number": 1.5, "any": {}},
                "secret": named("login", namespace, key="k"),
                "account": named("login", namespace),
                "object": named("login", namespace),
                "certificates": named("ca", certificates, type="Secret", key="k"),
            }[shape]
        case ["list", each]:
            return [whole(each, namespace, certificates)]
        case ["map", each]:
            return {"x": whole(each, namespace, certificates)}
        case ["one of", first, *_]:
            return first
        case _:
            return {
                name.removesuffix("!"): whole(each, namespace, certificates) for name, each in shape.items()
            }


def named(name: str, namespace: str | None, **more: str) -> dict[str, str]:
    return {"name": name, **more, **({} if namespace is None else {"namespace": namespace})}


def test_every_kind_has_the_selectors_of_its_shape() -> None:
    assert len(SHAPES) == 43
    expected = {key: {*selectors_of(shape)} for key, shape in SHAPES.items()}
    assert sum(map(len, expected.values())) == 157
    assert [key for key, paths in expected.items() if not paths] == ["fake"]
    assert {key: {*selectors_in(kind_of(key).spec)} for key in SHAPES} == expected


@pytest.mark.skipif(not DEFINITION.is_file(), reason=f"ESO's CustomResourceDefinition is not in {DEFINITION}")
def test_the_shapes_are_those_of_the_definition() -> None:
    definition = next(yaml.safe_load_all(DEFINITION.read_text()))
    assert {key: reduced(each) for key, each in providers(definition).items()} == SHAPES


@pytest.mark.parametrize("key", sorted({*SHAPES} - SPELT))
def test_the_rule_of_references_holds_for_every_kind(key: str) -> None:
    def block(namespace: str | None, certificates: str | None = None) -> dict[str, Any]:
        return {key: whole(SHAPES[key], namespace, certificates)}

    own = told(store_in("a", provider=block(None)), "a")
    assert (own.ready, {*own.selectors.values()}) == (Ready.READY, {"a"})
    assert "not served here" in str(own.reason)
    assert told(store_in("a", provider=block("a", "a")), "a").ready is Ready.READY
    far = told(store_in("a", provider=block("b", "b")), "a")
    assert (far.ready, len(far.refusals)) == (Ready.INVALID, len(own.selectors))
    shared = cluster_store(provider=block(None, "ca"))
    called = told(shared, "b")
    assert (called.ready, called.referent, {*called.selectors.values()} - {"ca"}) == (
        Ready.READY,
        True,
        {"b"},
    )
    assert called.selectors.keys() == own.selectors.keys()
    assert told(shared, "").ready is Ready.UNKNOWN
    pinned = told(cluster_store(provider=block("n", "n")), "b")
    assert (pinned.ready, pinned.referent, {*pinned.selectors.values()}) == (Ready.READY, False, {"n"})
    if any(isinstance(each, CaSelector) for each in _selectors(store_in("a", provider=block(None)))):
        assert told(cluster_store(provider=block(None)), "b").ready is Ready.INVALID


def _selectors(store: SecretStore) -> list[Selector]:
    converted = convert(store, store.spec.provider or {}, KINDS)
    assert not isinstance(converted, Problem)
    return [each for _, each in selectors(converted.spec)]


def test_a_kind_of_a_stacks_own_code_takes_the_place_of_a_shape() -> None:
    kinds = RefRegister()
    kinds.know("Vault", embedded="vault", module="x", model=lambda: ProviderSpec)
    kinds.register("Vault", embedded="vault")(ProviderSpec)
    assert not kind_of("vault", kinds).by_shape
    with pytest.raises(CredfleetError, match="is taken"):
        kinds.register("Vault", embedded="vault")(ProviderSpec)
