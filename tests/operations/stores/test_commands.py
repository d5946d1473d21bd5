"""What `credfleet stores` says of stores, callers, reach and mistakes in files, and how it converts."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import components.connection
import components.secret_stores.stack_cluster
from components.connection import ClusterTarget, Reply
from components.documents import read_all
from operations.main import app
from tests.support.cases import tabled

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples" / "stores"

REFERENT = """\
apiVersion: external-secrets.io/v1
kind: ClusterSecretStore
metadata: {name: shared, uid: "17"}
spec:
  provider:
    gcpsm: {projectID: "7", auth: {secretRef: {secretAccessKeySecretRef: {name: login, key: token}}}}
status: {capabilities: ReadOnly}
"""
OWN = """\
apiVersion: external-secrets.io/v1
kind: SecretStore
metadata: {name: own, namespace: a}
spec:
  conditions: [{namespaces: [b]}]
  providerRef: {apiVersion: providers.credfleet.io/v1alpha1, kind: Fake, name: values}
---
apiVersion: providers.credfleet.io/v1alpha1
kind: Fake
metadata: {name: values, namespace: a}
spec: {data: [{key: password, value: s3cr3t}]}
"""


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["stores", *arguments], input=stdin)


def rows(*arguments: str, stdin: str | None = None) -> list[dict[str, Any]]:
    result = run("explain", *arguments, "--output", "json", stdin=stdin)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def problems(text: str) -> dict[str, tuple[str, str]]:
    result = run("explain", "-", "-o", "json", stdin=text)
    assert result.exit_code == 2
    assert "s3cr3t" not in result.output
    told = json.loads(result.stdout)["error"]["problems"]
    return {each["place"]: (each["problem"], each["fix"]) for each in told}


def test_a_use_of_a_store_is_told_with_every_field() -> None:
    assert rows("-", "--caller", "b", stdin=REFERENT) == [
        {
            "store": "ClusterSecretStore/shared",
            "caller": "b",
            "admitted": True,
            "provider": "GCPSM/shared",
            "referent": True,
            "selectors": {"auth.secretRef.secretAccessKeySecretRef": "b"},
            "ready": "Ready",
            "reason": None,
        }
    ]


EMBEDDED = """\
apiVersion: external-secrets.io/v1
kind: ClusterSecretStore
metadata: {name: api}
spec: {provider: {kubernetes: {auth: {serviceAccount: {name: r}}, server: SERVER}}}
"""


@tabled("server, words")
def test_what_eso_misses_in_a_store_as_it_stands_is_told(server: str, words: str) -> None:
    (told,) = rows("-", "--caller", "b", stdin=EMBEDDED.replace("SERVER", server))
    assert (told["ready"], words in told["reason"]) == ("Invalid", True)


def test_without_callers_each_store_is_validated_as_its_kind_is() -> None:
    told = rows("-", stdin=f"{REFERENT}---\n{OWN}")
    assert [(each["store"], each["caller"], each["ready"]) for each in told] == [
        ("ClusterSecretStore/shared", "", "Unknown"),
        ("SecretStore/a/own", "a", "Ready"),
    ]


def test_callers_are_answered_one_by_one_and_once(tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(REFERENT)
    second.write_text(OWN)
    told = rows(str(first), str(second), "--caller", "b", "--caller", "a", "--caller", "b")
    assert [(each["store"], each["caller"], each["ready"]) for each in told] == [
        ("ClusterSecretStore/shared", "b", "Ready"),
        ("ClusterSecretStore/shared", "a", "Ready"),
        ("SecretStore/a/own", "b", "Invalid"),
        ("SecretStore/a/own", "a", "Ready"),
    ]


def test_what_kubectl_lists_is_read_as_it_is() -> None:
    item = "\n".join(f"    {line}" for line in REFERENT.splitlines()).replace("    ", "  - ", 1)
    told = rows("-", stdin=f"apiVersion: v1\nkind: List\nitems:\n{item}\n")
    assert [each["store"] for each in told] == ["ClusterSecretStore/shared"]


@pytest.mark.parametrize(
    ("labels", "caller", "ready"),
    [("{}", "a", "Ready"), ("{tier: gold}", "a", "Ready"), ("{}", "b", "Denied"), ("{}", "c", "Denied")],
)
def test_conditions_know_namespaces_by_the_label_that_kubernetes_gives_them(
    labels: str, caller: str, ready: str
) -> None:
    namespaces = "".join(
        f"---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}, labels: {labels}}}\n"
        for name in ("a", "b")
    )
    store = REFERENT.replace("spec:", "spec:\n  conditions: [{namespaces: [a]}]")
    assert rows("-", "--caller", caller, stdin=store + namespaces)[0]["ready"] == ready


UNDECIDED = {
    "labels": REFERENT.replace("spec:", "spec:\n  conditions: [{namespaceSelector: {matchLabels: {x: y}}}]"),
    "provider": OWN.partition("---")[0],
    "project": REFERENT.replace(
        'projectID: "7", auth: {secretRef: {secretAccessKeySecretRef: {name: login, key: token}}}', ""
    ),
    "runtime": """\
apiVersion: external-secrets.io/v1
kind: SecretStore
metadata: {name: out, namespace: a}
spec:
  runtimeRef: {kind: ProviderClass, name: aws}
  providerRef: {apiVersion: provider.external-secrets.io/v2alpha1, kind: SecretsManager, name: it}
""",
}
"""What is not there, and a file that says so."""


@pytest.mark.parametrize("case", UNDECIDED)
def test_what_the_files_do_not_decide_is_unknown_and_neither_nothing_nor_invalid(case: str) -> None:
    (store,) = explained = json.loads(
        run("explain", "-", "-c", "a", "-o", "json", stdin=UNDECIDED[case]).stdout
    )
    assert (store["ready"], store["admitted"]) == ("Unknown", None), explained
    assert store["reason"].startswith("unknown, because ")
    (reached,) = json.loads(run("reach", "-", "-n", "a", "-o", "json", stdin=UNDECIDED[case]).stdout)
    assert (reached["store"], reached["unknown"]) == (store["store"], store["reason"])
    for command in ("explain", "reach"):
        told = run(command, "-", "-n", "a", stdin=f"{UNDECIDED[case]}---\n{EMBEDDED}".replace("SERVER", "{}"))
        assert (told.exit_code, "unknown, because" in told.output) == (10, True)


def test_names_and_regular_expressions_decide_without_the_namespace() -> None:
    store = REFERENT.replace("spec:", "spec:\n  conditions: [{namespaces: [a]}, {namespaceRegexes: [^b]}]")
    told = [run("reach", "-", "-n", each, "-o", "json", stdin=store) for each in ("a", "b", "c")]
    assert [(each.exit_code, len(json.loads(each.stdout))) for each in told] == [(0, 1), (0, 1), (0, 0)]


def test_files_without_a_store_are_told_so() -> None:
    result = run("explain", "-", stdin="---\n---\n")
    assert (result.exit_code, result.stdout) == (0, "There is no store.\n")
    assert "it is empty" in problems("\n")["standard input"][0]


def test_all_problems_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    good, broken = tmp_path / "good.yaml", tmp_path / "broken.yaml"
    good.write_text(REFERENT.replace("kind: ClusterSecretStore", "kind: ClusterSecretStor"))
    broken.write_text("a: [s3cr3t\n")
    result = run("explain", str(good), str(broken), str(tmp_path / "none.yaml"))
    assert result.exit_code == 2
    assert "did you mean ClusterSecretStore (external-secrets.io/v1)?" in result.stderr
    assert f"{broken}:" in result.stderr
    assert "none.yaml" in result.stderr
    assert result.stderr.count("→") == 3
    assert "s3cr3t" not in result.output


def test_an_unknown_field_is_told_with_its_path_and_the_one_that_was_meant() -> None:
    found = problems(REFERENT.replace("{secretRef", "{SecretRef").replace("key: token", "kee: s3cr3t"))
    place = "standard input, document 1: ClusterSecretStore/shared: spec.provider.gcpsm.auth"
    assert found[f"{place}.SecretRef"][1] == "did you mean secretRef?"


def test_a_fault_in_a_fake_secret_is_told_without_its_value() -> None:
    found = problems(OWN.replace("key: password", "kee: password, version: {a: s3cr3t}"))
    place = "standard input, document 2: Fake/a/values: spec.data[0]"
    assert set(found) == {f"{place}.kee", f"{place}.version"}


@tabled("given, instead, place")
def test_a_document_that_makes_no_sense_is_told_where_it_stands(given: str, instead: str, place: str) -> None:
    assert f"standard input, {place}" in problems(OWN.replace(given, instead, 1))


@pytest.mark.parametrize(
    "text",
    [
        *("a: !secret s3cr3t", "a: 1\na: s3cr3t", "a: *s3cr3t", "\tb: s3cr3t"),
        pytest.param(f"a: {'[' * 3_000}{']' * 3_000}", id="nested"),
        pytest.param(OWN.replace("spec:", "spec: &a {a: *a}\nother:", 1), id="in-itself"),
        pytest.param(
            "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1},' * 9}]\n" for n in range(1, 12)), id="bomb"
        ),
    ],
)
def test_yaml_that_cannot_be_read_is_told_by_its_line_only(text: str) -> None:
    assert [place.startswith("standard input") for place in problems(text)] == [True]


def test_a_label_that_is_no_text_and_an_object_that_stands_twice_are_refused() -> None:
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, labels: {gold: true}}\n"
    assert "standard input, document 1: Namespace/a: metadata.labels" in problems(namespace)
    assert "twice" in problems(f"{REFERENT}---\n{REFERENT}").popitem()[1][0]


def test_a_caller_that_is_no_namespace_is_a_usage_error() -> None:
    assert run("explain", "-", "--caller", "A_", stdin=REFERENT).exit_code == 2


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_the_examples_of_the_documentation_can_be_explained(path: Path) -> None:
    told = rows(str(path), "--caller", "tenant-acme", "--caller", "build")
    assert {each["ready"] for each in told} >= {"Ready", "Denied", "Invalid"}


def test_the_documentation_shows_what_its_example_comes_to() -> None:
    page = (EXAMPLES.parents[1] / "secret-stores.md").read_text()
    told = rows(str(EXAMPLES / "stores.yaml"), "--caller", "tenant-acme", "--caller", "build")
    for each in told:
        assert f"| `{each['store']}` | `{each['caller']}` | {each['ready']} |" in page


def test_what_a_namespace_reaches_is_told_with_what_lies_between() -> None:
    result = run("reach", "-", "--namespace", "b", "--output", "json", stdin=f"{REFERENT}---\n{OWN}")
    assert json.loads(result.stdout) == [
        {
            "store": "ClusterSecretStore/shared",
            "provider": "GCPSM/shared",
            "reads": True,
            "writes": True,
            "admittedBy": [],
            "where": {"projectID": "7", "secretVersionSelectionPolicy": "LatestOrFail"},
            "between": [
                {
                    "path": "auth.secretRef.secretAccessKeySecretRef",
                    "kind": "Secret",
                    "namespace": "b",
                    "name": "login",
                    "key": "token",
                }
            ],
        }
    ]
    shown = run("reach", "-", "--namespace", "b", stdin=REFERENT)
    assert "Secret b/login (auth.secretRef.secretAccessKeySecretRef)" in shown.stdout
    assert "reaches nothing" in run("reach", "-", "-n", "b", stdin=OWN).stdout


@pytest.mark.parametrize("command", ["reach", "explain"])
@pytest.mark.parametrize("sources", [[], ["-", "--live"], ["-", "--stack", "dev"]])
def test_stores_are_read_from_files_or_a_stack_or_a_cluster(command: str, sources: list[str]) -> None:
    assert run(command, *sources, "--namespace", "a", stdin=REFERENT).exit_code == 2


@pytest.mark.parametrize("command", ["reach", "explain"])
def test_stack_is_named_alike_for_what_it_declares_and_for_its_cluster(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    asked: list[ClusterTarget] = []

    def connect(target: ClusterTarget) -> Speaking:
        asked.append(target)
        return Speaking()

    for module in (components.connection, components.secret_stores.stack_cluster):
        monkeypatch.setattr(module, "connect", connect)
    declared = json.loads(run(command, "--stack", "dev", "-n", "tenant-acme", "-o", "json").stdout)
    assert "SecretStore/tenant-acme/acme" in [each["store"] for each in declared]
    assert (
        run(command, "--stack", "dev", "--live", "--kubeconfig", "k", "-n", "a", "-o", "json").exit_code == 0
    )
    assert {(each.kubeconfig, each.context) for each in asked} == {("k", "credfleet-sandbox")}


@pytest.mark.parametrize("command", ["reach", "explain"])
def test_cluster_without_the_operator_is_told_for_what_it_is(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    class Bare(Served):
        def call(self, method: str, path: str, **_headers: object) -> Reply:
            return Reply(404, {}) if path.startswith("/apis") else super().call(method, path)

    monkeypatch.setattr(components.connection, "connect", lambda _target: Bare())  # pyright: ignore
    refused = run(command, "--live", "--kubeconfig", "k", "-n", "a")
    assert refused.exit_code != 0
    assert "External Secrets Operator is not installed there" in refused.stderr


class Served:
    """A cluster with one namespace and its stores."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def call(self, method: str, path: str) -> Reply:
        self.asked.append(f"{method} {path}")
        name = {"metadata": {"name": "a", "labels": {"kubernetes.io/metadata.name": "a", "tier": "gold"}}}
        [store] = yaml_documents(REFERENT)
        spec = {**store["spec"], "conditions": [{"namespaceSelector": {"matchLabels": {"tier": "gold"}}}]}
        listed = {"clustersecretstores": [{"metadata": store["metadata"], "spec": spec}], "secretstores": []}
        kind = path.rpartition("/")[2]
        body = (
            {"items": listed[kind]} if kind in listed else {"apiVersion": "v1", "kind": "Namespace", **name}
        )
        return Reply(200, body) if path.count("/b") == 0 else Reply(404, {})


def test_stores_of_a_cluster_are_read_as_they_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Served()

    def connect(target: ClusterTarget) -> Served:
        assert target.kubeconfig == "config"
        return cluster

    monkeypatch.setattr(components.connection, "connect", connect)
    live = ("--live", "--kubeconfig", "config")
    (found,) = json.loads(run("reach", *live, "--namespace", "a", "-o", "json").stdout)
    assert found["admittedBy"] == ["conditions[0]"]
    assert cluster.asked == [
        "GET /api/v1/namespaces/a",
        "GET /apis/external-secrets.io/v1/namespaces/a/secretstores",
        "GET /apis/external-secrets.io/v1/clustersecretstores",
    ]
    absent = run("reach", *live, "--namespace", "b")
    assert absent.exit_code == 5
    assert "/api/v1/namespaces/b" in absent.stderr


class Speaking(Served):
    """The same, where objects of ESO say how they stand."""

    @property
    def patient(self) -> Served:
        """It answers at once."""
        return self

    def call(self, method: str, path: str, **_headers: object) -> Reply:
        version = "external-secrets.io/v1"
        served = {"versions": [{"groupVersion": version}]}
        failed = {
            "type": "Ready",
            "status": "False",
            "reason": "SecretSyncedError",
            "message": "could not: x",
        }
        answers = {
            "/apis": {"groups": [served]},
            f"/apis/{version}": {
                "resources": [
                    {"kind": kind, "name": f"{kind.lower()}s"} for kind in ("ExternalSecret", "SecretStore")
                ]
            },
            f"/apis/{version}/namespaces/a/externalsecrets": {
                "items": [{"metadata": {"name": "key"}, "status": {"conditions": [failed]}}]
            },
        }
        return Reply(200, answers[path]) if path in answers else super().call(method, path)


def test_what_objects_of_a_cluster_say_of_themselves_is_told_beside_the_stores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def connect(_target: ClusterTarget) -> Speaking:
        return Speaking()

    for module in (components.connection, components.secret_stores.stack_cluster):
        monkeypatch.setattr(module, "connect", connect)
    live = ("explain", "--live", "--kubeconfig", "config", "--caller", "a")
    told = json.loads(run(*live, "-o", "json").stdout)
    assert [each["store"] for each in told["stores"]] == ["ClusterSecretStore/shared"]
    assert told["objects"] == [
        {
            "object": "ExternalSecret/a/key",
            "ready": False,
            "reason": "Ready is False, SecretSyncedError: could not",
        }
    ]
    assert "SecretSyncedError" in run(*live).stdout
    assert run("explain", "--live").exit_code == run("explain").exit_code == 2


def test_stores_of_a_stack_are_those_it_declares() -> None:
    found = json.loads(run("reach", "--stack", "dev", "--namespace", "tenant-acme", "-o", "json").stdout)
    assert found
    assert {each["store"].split("/")[0] for each in found} <= {"SecretStore", "ClusterSecretStore"}


def yaml_documents(text: str) -> list[Any]:
    return [each.data for each in read_all(text, "text")]


@pytest.mark.parametrize("embed", [(), ("--embed",)])
@pytest.mark.parametrize("listed", [False, True])
def test_stores_of_the_old_version_are_converted_to_that_which_is_served(listed: bool, embed: Any) -> None:
    def given(version: str) -> str:
        store = REFERENT.replace("/v1", version)
        item = "\n".join(f"    {line}" for line in store.splitlines()).replace("    ", "  - ", 1)
        return f"apiVersion: v1\nkind: List\nitems:\n{item}\n" if listed else store

    old, new = (run("convert", "-", *embed, stdin=given(each)) for each in ("/v1beta1", "/v1"))
    assert (old.exit_code, old.stdout) == (0, new.stdout)
    gone = run("convert", "-", *embed, stdin=given("/v1beta1").replace("gcpsm", "alibaba"))
    assert (gone.exit_code, "alibaba" in gone.output) == (2, True)
    assert run("explain", "-", stdin=given("/v1beta1")).exit_code == 2


def test_documents_are_converted_there_and_back_again() -> None:
    apart = run("convert", "-", stdin=f"{REFERENT}---\n{OWN}")
    assert apart.exit_code == 0
    assert [each["kind"] for each in yaml_documents(apart.stdout)] == [
        "ClusterSecretStore",
        "GCPSM",
        "SecretStore",
        "Fake",
    ]
    back = run("convert", "-", "--embed", stdin=apart.stdout)
    assert yaml_documents(back.stdout)[0] == yaml_documents(REFERENT)[0]
    listed = json.loads(run("convert", "-", "-o", "json", stdin=REFERENT).stdout)
    assert (listed["kind"], len(listed["items"])) == ("List", 2)
    again = run("convert", "-", "--embed", stdin=json.dumps(listed))
    assert yaml_documents(again.stdout) == yaml_documents(REFERENT)


@tabled("other")
def test_a_document_of_another_kind_is_passed_over_and_through(other: str) -> None:
    given, whole = f"{other}\n---\n{OWN}", yaml_documents(other.replace("2026-11-28", "'2026-11-28'"))
    assert rows("-", stdin=given) == rows("-", stdin=OWN)
    assert run("reach", "-", "-n", "a", stdin=given).stdout == run("reach", "-", "-n", "a", stdin=OWN).stdout
    for form in ((), ("--embed",)):
        assert yaml_documents(run("convert", "-", *form, stdin=given).stdout)[:1] == whole
        assert json.loads(run("convert", "-", *form, "-o", "json", stdin=given).stdout)["items"][:1] == whole


@tabled("given, fix")
def test_a_slip_in_what_is_read_here_is_told_with_its_fix(given: str, fix: str) -> None:
    assert [told for _, told in problems(f"{{{given}, metadata: {{name: a}}}}").values()] == [fix]


def test_what_has_no_other_form_is_told_as_a_problem() -> None:
    told = run("convert", "-", stdin=REFERENT.replace("gcpsm", "vault"))
    assert told.exit_code == 2
    assert "ClusterSecretStore/shared" in told.stderr
