"""All kinds of provider that External Secrets Operator has: their selectors, and where each is read.

That the shapes are those of its definition is asked of the definition, where that lies beside the project.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args

import pytest
import yaml
from pydantic import BaseModel

from components.errors import CredfleetError, EsoError, Problem
from components.secret_stores.clients.client import Capability
from components.secret_stores.consumers import ExternalSecret, PushSecret
from components.secret_stores.convert import convert
from components.secret_stores.eso import compile_push, compile_read, store_limits
from components.secret_stores.eso_namespaces import NamespaceRule, list_unfollowed
from components.secret_stores.eso_providers import facts_of
from components.secret_stores.explain import KnownObjects, Ready, explain
from components.secret_stores.kinds import KINDS
from components.secret_stores.login import login_of, with_login
from components.secret_stores.model import CaSelector, ProviderSpec, SecretStore, Selector
from components.secret_stores.referent import selectors
from components.secret_stores.registry import ProviderKind, RefRegister
from components.stack_config.store_logins import logs_in
from tests.support.cases import cases
from tests.support.shapes import SELECTORS, SHAPES, least, plain, selectors_of
from tests.support.stores import cluster_store, store_in, told
from tests.witness.eso_shapes import providers, reduced

ROOT: Final = Path(__file__).parents[3]
DEFINITION: Final = ROOT.parent / "shared/data/external-secrets-crds/secretstores.yaml"


def kind_of(key: str, kinds: RefRegister = KINDS) -> ProviderKind:
    found = kinds.embedded(key)
    assert not isinstance(found, Problem)
    return found


SPELT: Final = {key for key in SHAPES if not kind_of(key).by_shape}
"""Kinds whose specs are written out in `specs.py`."""


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


def block_of(key: str, path: tuple[str, ...], namespace: str | None, certificates: str | None = None) -> Any:
    """The smallest embedded block with the selector at a path, each selector in a namespace."""

    def given(word: str) -> Any:
        where = certificates if word == "certificates" else namespace
        said = where is not None and word in SELECTORS
        return {**plain(word), "namespace": where} if said else plain(word)

    return {key: least(SHAPES[key], path, given)}


def test_every_kind_has_the_selectors_of_its_shape() -> None:
    assert len(SHAPES) == 43
    expected = {
        key: {"".join(f".{step}" for step in path) for path in selectors_of(shape)}
        for key, shape in SHAPES.items()
    }
    assert sum(map(len, expected.values())) == 157
    assert [key for key, paths in expected.items() if not paths] == ["fake"]
    assert {key: {*selectors_in(kind_of(key).spec)} for key in SHAPES} == expected


def test_every_kind_can_do_what_the_operators_provider_says() -> None:
    can = {key: kind_of(key).capabilities for key in SHAPES}
    assert can == {key: facts_of(key).get("can") for key in SHAPES}
    assert {key for key, each in can.items() if each is Capability.WRITE_ONLY} == {"github", "ngrok"}
    assert sum(each is Capability.READ_ONLY for each in can.values()) == 22


@pytest.mark.parametrize("key", sorted(SHAPES))
def test_a_use_that_the_kind_cannot_serve_is_refused_where_it_is_written(key: str) -> None:
    of = kind_of(key).provider("a", "it", least(SHAPES[key]))
    asked = {"namespace": "a", "name": "x", "store": {"kind": "SecretStore", "name": "s"}}
    pushed = {
        "secret": "s",
        "key": "k",
        "remoteKey": "r",
        **({"property": "p"} if key == "kubernetes" else {}),
    }
    read = ExternalSecret.model_validate({**asked, "target": "x", "data": {"k": {"key": "r"}}})
    push = PushSecret.model_validate({**asked, "data": [pushed]})
    refused: list[bool] = []
    for compiled in (partial(compile_read, read), partial(compile_push, push)):
        try:
            compiled(of, KINDS)
            refused.append(False)
        except EsoError as error:
            refused.append("are only" in error.problem)
    can = facts_of(key).get("can")
    assert refused == [can == "WriteOnly", can == "ReadOnly"]


@pytest.mark.parametrize(
    ("key", "way"),
    [(key, index) for key in sorted(SHAPES) for index, _ in enumerate(facts_of(key).get("logins", ()))],
)
def test_a_credential_is_written_in_where_the_spec_begins_to_log_in(key: str, way: int) -> None:
    kind, login = kind_of(key), facts_of(key)["logins"][way]
    begun = least(SHAPES[key], next(iter(login.values())).replace("[login]", "").split("."))
    begun.pop("secrets", None)
    for path in login.values():
        part = begun
        for step in path.split(".")[:-1]:
            part = part.get(step, {})
        part.pop(path.rpartition(".")[2], None)
    assert login_of(kind, begun) == login
    filled = with_login(kind, begun, "its")
    assert not isinstance(filled, Problem)
    places = dict(selectors(kind.provider("a", "it", filled).spec))
    for name, path in login.items():
        written = places[path.replace("[login]", "[0]")]
        assert (written.name, getattr(written, "key", None)) == ("its-credentials", name)


def test_only_a_kind_without_a_login_takes_no_credential_and_what_is_given_needs_none() -> None:
    assert {key for key in SHAPES if "logins" not in facts_of(key)} == {"fake"}
    assert isinstance(with_login(kind_of("fake"), {}, "its"), Problem)
    own = {"accessKey": {"value": "AKIA"}}
    assert login_of(kind_of("scaleway"), own) == {"secretKey": "secretKey.secretRef"}
    assert isinstance(with_login(kind_of("webhook"), {"secrets": [{"name": "login"}]}, "its"), Problem)


@pytest.mark.parametrize(("kind", "spec"), [("Vault", {"auth": {"appRole": {"roleId": "r"}}}), ("AWS", {})])
def test_a_login_that_is_written_in_is_the_providers_own(kind: str, spec: dict[str, Any]) -> None:
    assert logs_in({"kind": kind, "spec": spec, "credentialsFrom": "c"})
    assert not logs_in({"kind": kind, "spec": spec})


@pytest.mark.skipif(not DEFINITION.is_file(), reason=f"ESO's CustomResourceDefinition is not in {DEFINITION}")
def test_the_shapes_are_those_of_the_definition() -> None:
    definition = next(yaml.safe_load_all(DEFINITION.read_text()))
    assert {key: reduced(each) for key, each in providers(definition).items()} == SHAPES


CASES: Final = [
    pytest.param(key, path, id=f"{key}-{'.'.join(path)}")
    for key in sorted({*SHAPES} - SPELT)
    for path in selectors_of(SHAPES[key])
]


@pytest.mark.parametrize(("key", "path"), CASES)
def test_the_rule_of_references_holds_for_every_selector_of_every_kind(
    key: str, path: tuple[str, ...]
) -> None:
    def block(namespace: str | None, certificates: str | None = None) -> dict[str, Any]:
        return block_of(key, path, namespace, certificates)

    own = told(store_in("a", provider=block(None)), "a")
    assert (own.ready, {*own.selectors.values()}) == (Ready.READY, {"a"})
    assert any(re.sub(r"\[\d+\]", "", each) == ".".join(path) for each in own.selectors)
    assert "not served here" in str(own.reason)
    assert told(store_in("a", provider=block("a", "a")), "a").ready is Ready.READY
    far = told(store_in("a", provider=block("b", "b")), "a")
    assert (far.ready, len(far.refusals)) == (Ready.INVALID, len(own.selectors))
    shared = cluster_store(provider=block(None, "ca"))
    called = told(shared, "b")
    followed = {*called.selectors.values()} - {"ca"}
    assert called.ready is Ready.READY
    assert called.referent == bool(followed)
    assert followed <= {"b"}
    assert called.selectors.keys() == own.selectors.keys()
    assert told(shared, "").ready is (Ready.UNKNOWN if followed else Ready.READY)
    pinned = told(cluster_store(provider=block("n", "n")), "b")
    assert (pinned.ready, pinned.referent, {*pinned.selectors.values()}) == (Ready.READY, False, {"n"})
    if any(isinstance(each, CaSelector) for each in _selectors(store_in("a", provider=block(None)))):
        assert told(cluster_store(provider=block(None)), "b").ready is Ready.INVALID


def test_what_the_operators_providers_did_is_known_of_every_selector() -> None:
    table = json.loads((ROOT / "components/secret_stores/eso_namespaces.json").read_text())
    assert table["source"] == {"operator": "External Secrets Operator", "version": "2.9.0"}
    assert {*table["words"]} == {*NamespaceRule}
    assert NamespaceRule.UNSEEN not in {
        word for told in table["selectors"].values() for word in told.values()
    }
    assert {(key, path) for key, told in table["selectors"].items() for path in told} == {
        (key, ".".join(path)) for key, shape in SHAPES.items() for path in selectors_of(shape)
    }


@pytest.mark.parametrize(("key", "path"), CASES)
def test_a_store_is_invalid_only_for_what_the_operator_was_seen_to_do(
    key: str, path: tuple[str, ...]
) -> None:
    store = cluster_store(provider=block_of(key, path, None, "ca"))
    provider = convert(store, store.spec.provider or {}, KINDS)
    assert not isinstance(provider, Problem)
    as_it_stands = explain(store, "b", KnownObjects(KINDS, {}, {}, as_they_stand=True))
    refused = [
        each.problem for each in store_limits(store, provider, kind_of(key)) if "namespace" in each.problem
    ]
    judged = {where: habit for where, habit, _ in list_unfollowed(provider, key)}
    assert len(refused) == len(judged)
    told_of = [each for each in as_it_stands.refusals if "has no namespace" in each.problem]
    assert bool(told_of) == any(each is not NamespaceRule.UNSEEN for each in judged.values())


@cases(
    "key, path, habit",
    {
        "aws-by-token": ("aws", "auth.jwt.serviceAccountRef", NamespaceRule.FOLLOWED),
        "vault-by-account": ("vault", "auth.kubernetes.serviceAccountRef", NamespaceRule.FOLLOWED),
        "vault-by-certificate": ("vault", "tls.certSecretRef", NamespaceRule.EARLY),
        "onepassword": ("onepassword", "auth.secretRef.connectTokenSecretRef", NamespaceRule.REFUSED),
        "webhook": ("webhook", "secrets.secretRef", NamespaceRule.LATE),
        "azure-by-certificate": ("azurekv", "authSecretRef.clientCertificate", NamespaceRule.EARLY),
        "scaleway": ("scaleway", "accessKey.secretRef", NamespaceRule.REFUSED),
        "akeyless-by-account": ("akeyless", "authSecretRef.serviceAccountRef", NamespaceRule.FOLLOWED),
    },
)
def test_a_habit_is_that_of_the_kinds_own_provider(key: str, path: str, habit: NamespaceRule) -> None:
    store = cluster_store(provider={key: least(SHAPES[key], path.split("."))})
    provider = convert(store, store.spec.provider or {}, KINDS)
    assert not isinstance(provider, Problem)
    found = {re.sub(r"\[\d+\]", "", where): each for where, each, _ in list_unfollowed(provider, key)}
    assert found.get(path, NamespaceRule.FOLLOWED) is habit


def test_a_store_that_the_operator_refuses_at_reads_only_is_no_worse_without_a_caller() -> None:
    store = cluster_store(provider=block_of("webhook", ("secrets", "secretRef"), None))
    known = KnownObjects(KINDS, {}, {}, as_they_stand=True)
    assert [explain(store, caller, known).ready for caller in ("b", "")] == [Ready.INVALID, Ready.UNKNOWN]


@pytest.mark.parametrize("namespace", [None, "n"])
def test_an_account_that_the_operator_does_not_look_at_is_refused_by_name(namespace: str | None) -> None:
    store = cluster_store(provider=block_of("vault", ("auth", "gcp", "serviceAccountRef"), namespace))
    provider = convert(store, store.spec.provider or {}, KINDS)
    assert not isinstance(provider, Problem)
    (limit,) = store_limits(store, provider, kind_of("vault"))
    assert "does not look at auth.gcp.serviceAccountRef" in limit.problem
    found = explain(store, "b", KnownObjects(KINDS, {}, {}, as_they_stand=True))
    assert (found.ready, found.selectors) == (Ready.READY, {})
    assert "does not look at auth.gcp.serviceAccountRef" in str(found.reason)


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
