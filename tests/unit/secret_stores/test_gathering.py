"""Keys that a read gathers: of one secret's fields, or of secrets by name and tags, in both back ends."""

from __future__ import annotations

import base64
import json
from collections.abc import Generator, Mapping
from typing import Any, cast
from uuid import uuid4

import pytest

from components.connection import Connection, Reply
from components.errors import CredfleetError, EsoError, StoreError
from components.projection.model import encode
from components.secret_manager import SecretManagerTarget, new_secret_manager, secret_name
from components.secret_stores.clients.client import SecretsClient
from components.secret_stores.clients.fake import FakeClient
from components.secret_stores.clients.gcpsm import GcpSecretManagerClient
from components.secret_stores.clients.kubernetes import KubernetesClient
from components.secret_stores.consumers import ExternalSecret
from components.secret_stores.eso import compile_read
from components.secret_stores.gathering import as_keys, read_objections
from components.secret_stores.kinds import KINDS
from components.secret_stores.reading import list_versions
from components.secret_stores.registry import ProviderKind
from components.secret_stores.specs import FakeSpec
from sandbox.tests.support import clouds
from tests.support.cases import cases, table
from tests.support.stores import provider

PROJECT = "test-project"


def read(
    *sources: Mapping[str, Any],
    data: Mapping[str, Any] | None = None,
    target: str = "t",
    **more: Any,
) -> ExternalSecret:
    named = {"name": "r", "namespace": "a", "store": {"kind": "SecretStore", "name": "s"}}
    said = {**named, "target": target, "data": data or {}, "dataFrom": sources, **more}
    return ExternalSecret.model_validate(said)


def made(client: SecretsClient, *sources: Mapping[str, Any], **data: Mapping[str, Any]) -> dict[str, bytes]:
    """Return what the Secret holds that a direct read makes."""
    found = list_versions(read(*sources, data=data), client)["data"]
    return {key: base64.b64decode(value) for key, value in found.items()}


def name(pattern: str) -> dict[str, Any]:
    return {"find": {"name": {"regexp": pattern}}}


def extract(key: str, **more: str) -> dict[str, Any]:
    return {"extract": {"key": key, **more}}


FAKE = FakeClient(
    "it",
    FakeSpec.model_validate(
        {
            "data": [
                {"key": "db", "value": json.dumps({"user": "ann", "port": 5432, "inner": {"a": "b"}})},
                {"key": "db-old", "value": "1", "version": "1"},
                {"key": "db-old", "value": "2", "version": "2"},
                {"key": "text", "value": "no JSON"},
                {"key": "hollow", "value": '{"": "dropped"}'},
            ]
        }
    ),
)


def test_names_become_keys_as_the_operator_makes_them() -> None:
    found = {"a b/c": b"1", "x.y-z_1": b"2", "": b"3"}
    assert as_keys(found, "r") == {"a_b_c": b"1", "x.y-z_1": b"2"}


@pytest.mark.parametrize("names", [["a b", "a/b"], ["\u00e9"], ["x" * 254], [".."]])
def test_names_that_are_no_keys_are_refused(names: list[str]) -> None:
    with pytest.raises(StoreError):
        as_keys(dict.fromkeys(names, b""), "r")


def test_a_later_source_goes_before_an_earlier_one_and_what_is_named_before_both() -> None:
    found = made(FAKE, extract("db"), extract("db", property="inner"), name("^db"), user={"key": "text"})
    assert found == {
        "user": b"no JSON",
        "port": b"5432",
        "inner": b'{"a": "b"}',
        "a": b"b",
        "db": b'{"user": "ann", "port": 5432, "inner": {"a": "b"}}',
        "db-old": b"2",
    }


def test_a_template_makes_all_keys_and_a_key_that_it_lacks_is_told() -> None:
    template = {"url": "db://{{ .user }}:{{.port}}/\n", "user": "{{ .user }}", "none": ""}
    found = list_versions(read(extract("db"), template=template), FAKE)["data"]
    assert found == encode({"url": b"db://ann:5432/\n", "user": b"ann", "none": b""})
    with pytest.raises(StoreError, match=r"template.url: none of its keys is usr\n.*did you mean user\?"):
        list_versions(read(extract("db"), template={"url": "{{ .usr }}"}), FAKE)
    with pytest.raises(StoreError, match="has no key"):
        list_versions(read(name("^none"), template={"url": "text"}), FAKE)


@cases("source, code", table(__file__, "test_a_secret_that_has_no_fields_is_told"))
def test_a_secret_that_has_no_fields_is_told(source: dict[str, Any], code: str) -> None:
    with pytest.raises(StoreError) as told:
        made(FAKE, source)
    assert told.value.code == code
    assert "no JSON" not in str(told.value).replace("is not a JSON object", "")


class Secrets:
    """An API server with two Secrets."""

    ITEMS = (
        ("db", {"user": b"ann", "bytes": b"\xff"}, {"team": "a", "tier": "x"}),
        ("other", {"k": b"v"}, {"team": "b"}),
    )

    def call(self, _method: str, path: str, **_more: Any) -> Reply:
        plain, _, query = path.partition("?labelSelector=")
        wanted = dict(each.split("%3D") for each in query.split("%2C") if each)
        items = [
            {
                "metadata": {"name": secret, "resourceVersion": "7"},
                "data": {k: base64.b64encode(v).decode() for k, v in data.items()},
            }
            for secret, data, labels in self.ITEMS
            if wanted.items() <= labels.items()
        ]
        if plain.endswith("/secrets"):
            return Reply(200, {"items": items})
        found = [each for each in items if each["metadata"]["name"] == plain.rpartition("/")[2]]
        return Reply(200, found[0]) if found else Reply(404, {})


def test_all_keys_of_a_secret_of_a_cluster_are_gathered_byte_for_byte() -> None:
    client = KubernetesClient("it", cast("Connection", Secrets()), "ns", foreign=False)
    assert made(client, extract("db")) == {"user": b"ann", "bytes": b"\xff"}
    assert made(client, name("^o")) == {"other": b'{"k":"v"}'}
    assert [*made(client, {"find": {"tags": {"team": "a", "tier": "x"}}})] == ["db"]
    with pytest.raises(StoreError, match="has no none"):
        made(client, extract("none"))


@pytest.mark.parametrize(("namespace", "found"), [("a", ["db"]), ("ns", ["db", "other"])])
def test_a_read_never_finds_its_own_target_but_finds_those_of_other_namespaces(
    namespace: str, found: list[str]
) -> None:
    client = KubernetesClient("it", cast("Connection", Secrets()), namespace, foreign=False)
    every = read(name("."), target="other")
    assert [*list_versions(every, client)["data"]] == found
    assert ("other@" in list_versions(every, client)["metadata"]["resourceVersion"]) == ("other" in found)


@pytest.mark.parametrize(
    ("target", "refused"), [("t", True), ("x", False), ("named", True), ("taken", True), ("other", False)]
)
@pytest.mark.parametrize("namespace", ["a", "ns"])
def test_a_read_that_eso_would_put_into_itself_is_refused(namespace: str, target: str, refused: bool) -> None:
    found = read(name("^t$"), extract("taken"), data={"k": {"key": "named"}}, target=target)
    of = provider("Kubernetes", {"remoteNamespace": namespace, "auth": {"serviceAccount": {"name": "r"}}})
    if refused and namespace == "a":
        with pytest.raises(EsoError, match="into itself"):
            compile_read(found, of, KINDS)
    else:
        compile_read(found, of, KINDS)


@pytest.fixture(scope="module")
def google(tmp_path_factory: pytest.TempPathFactory) -> Generator[SecretManagerTarget]:
    with clouds.secret_manager(tmp_path_factory.mktemp("secret-manager")) as cloud:
        yield SecretManagerTarget(f"{cloud.url}/v1/", "any")


def test_secrets_of_a_project_are_found_by_name_and_by_all_labels(google: SecretManagerTarget) -> None:
    manager, run = new_secret_manager(google), uuid4().hex
    for each, labels in (("db", {"team": run, "tier": "x"}), ("api", {"team": run})):
        manager.create(secret_name(PROJECT, f"{run}-{each}"), labels)
        manager.add(secret_name(PROJECT, f"{run}-{each}"), b'{"user": "ann"}')
    client = GcpSecretManagerClient(manager, PROJECT, fetch=False)
    assert made(client, extract(f"{run}-db")) == {"user": b"ann"}
    assert {*made(client, name(f"^{run}"))} == {f"{run}-db", f"{run}-api"}
    assert [*made(client, {"find": {"tags": {"team": run, "tier": "x"}}})] == [f"{run}-db"]
    assert [*made(client, {"find": {"tags": {"team": run}, "path": f"{run}-a"}})] == [f"{run}-api"]
    with pytest.raises(StoreError, match="has no key"):
        made(client, {"find": {"name": {"regexp": run}, "path": run[1:]}})
    manager.create(secret_name(PROJECT, f"{run}-empty"), {})
    with pytest.raises(StoreError, match="no version"):
        made(client, name(f"^{run}"))


def test_labels_of_a_location_are_refused_by_both(google: SecretManagerTarget) -> None:
    tags = {"find": {"tags": {"team": "a"}}}
    client = GcpSecretManagerClient(new_secret_manager(google), PROJECT, "europe-west1", fetch=False)
    with pytest.raises(StoreError, match="by name"):
        made(client, tags)
    regional = provider("GCPSM", {"projectID": PROJECT, "location": "europe-west1"}, "a")
    with pytest.raises(EsoError, match="by name"):
        compile_read(read(tags), regional, KINDS)


@cases("kind, spec, sources, said_", table(__file__, "test_both_back_ends_refuse_the_same_sources"))
def test_both_back_ends_refuse_the_same_sources(
    kind: str, spec: dict[str, Any], sources: list[dict[str, Any]], said_: str
) -> None:
    its = provider(kind, spec, "a")
    (problem,) = read_objections(read(*sources), KINDS.kind_of(its))
    assert said_ in str(problem)
    with pytest.raises(CredfleetError):
        compile_read(read(*sources), its, KINDS)


def test_the_operator_is_given_a_path_where_its_provider_looks_at_it() -> None:
    by_path = {"find": {"name": {"regexp": "x"}, "path": "a"}}
    taking = set[str]()
    for reference in KINDS.references():
        kind = KINDS.referred(*reference)
        assert isinstance(kind, ProviderKind)
        if not any("by a path" in told.problem for told in read_objections(read(by_path), kind)):
            taking.add(kind.embedded)
    assert taking == set(table(__file__, "KINDS_WITH_PATHS"))


@cases("strategy, content, decoded", table(__file__, "test_values_are_decoded_as_the_operator_decodes"))
def test_values_are_decoded_as_the_operator_decodes(
    strategy: str, content: str, decoded: list[int] | None
) -> None:
    client = FakeClient("it", FakeSpec.model_validate({"data": [{"key": "k", "value": content}]}))
    way = {"decodingStrategy": strategy}
    for source, data in (
        ({"find": {"name": {"regexp": "k"}, **way}}, {}),
        (None, {"k": {"key": "k", **way}}),
    ):
        if decoded is None:
            with pytest.raises(StoreError, match=f"key k.*not {strategy}"):
                made(client, *filter(None, [source]), **data)
        else:
            assert made(client, *filter(None, [source]), **data) == {"k": bytes(decoded)}


def test_the_fields_of_a_secret_are_decoded_one_by_one() -> None:
    assert made(FAKE, extract("db", property="inner", decodingStrategy="Auto")) == {"a": b"b"}
    with pytest.raises(StoreError, match="key user") as told:
        made(FAKE, extract("db", decodingStrategy="Base64"))
    assert "ann" not in str(told.value)


def test_the_operator_is_given_the_sources_as_it_has_them() -> None:
    sources = [
        extract("db", property="a.b", decodingStrategy="Auto"),
        name("^db"),
        {"find": {"tags": {"team": "a"}, "path": "d", "decodingStrategy": "Base64URL"}},
    ]
    google = provider("GCPSM", {"projectID": "p"}, "a")
    manifest = compile_read(read(*sources), google, KINDS)
    assert manifest["spec"]["dataFrom"] == [
        extract("db", property="a\\.b", decodingStrategy="Auto"),
        *sources[1:],
    ]
    assert "data" not in manifest["spec"]
    data = {"k": {"key": "db", "decodingStrategy": "Base64"}}
    (named,) = compile_read(read(data=data), google, KINDS)["spec"]["data"]
    assert named["remoteRef"] == data["k"]
