"""What a cluster's pull secret registers, to the letter."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pulumi
import pulumi_gcp
import pytest

from components.credentials import Credentials
from components.pull_secret.component import PullSecret, PullSecretArgs
from components.pull_secret.model import Availability, Cluster, Phase
from components.pull_secret.names import secret_labels
from components.pull_secret.preconditions import ADAPTERS, decide
from components.pull_secret.retention import Retention
from components.pull_secret.settings import PullSecretsSection
from components.pull_secret.verification import digest_of
from tests.support.cases import cases, table, tabled
from tests.support.recorder import Recorder, Secret, Unknown, plain, record

ENTRY = "gcp:secretmanager/secret:Secret"
VERSION = "gcp:secretmanager/secretVersion:SecretVersion"
MEMBER = "gcp:secretmanager/secretIamMember:SecretIamMember"
VERIFICATION = "pulumi-python:dynamic/credfleet:PullSecretVerification"
RETENTION = "pulumi-python:dynamic/credfleet:PullSecretRetention"
STATUS = "pulumi-python:dynamic/credfleet:PullSecretStatus"
NAMESPACE = "kubernetes:core/v1:Namespace"
KUBERNETES_SECRET = "kubernetes:core/v1:Secret"
COMPONENT = "credfleet:index:PullSecret"
START = "gcp"
GET_SECRETS = "gcp:secretmanager/getSecrets:getSecrets"

TEXT = ' {"auths": {"quay.io": {"auth": "dXNlcjpzZW50aW5lbA=="}}}\n'
ORG = '{"auths": {"quay.io": {"auth": "b3JnOnA="}, "ghcr.io": {"auth": "dTpw"}}}'
DIGEST = digest_of("owner", TEXT.encode())
CLUSTER = Cluster(
    id="cls-1",
    name="East",
    region="europe-west1",
    generation=2,
    project="fleet-1",
    pull_secret="quay",
    adapters=dict.fromkeys(ADAPTERS, Availability.TRUE),
)
WAITING = replace(CLUSTER, adapters={**CLUSTER.adapters, "dns": Availability.FALSE})
REFERENCE = "projects/fleet-1/secrets/hyperfleet-cls-1-pull-secret"
KEY = "projects/p/locations/europe-west1/keyRings/r/cryptoKeys/k"
HYPERFLEET = {"apiUrl": "http://127.0.0.1:1"}
READER = {"serviceAccount": "reader@fleet-1.iam.gserviceaccount.com"}
ADAPTER = {"serviceAccount": "adapter@fleet-1.iam.gserviceaccount.com"}
UPDATED = table(__file__, "UPDATED")


def declared(
    cluster: Cluster = CLUSTER,
    *,
    preview: bool = False,
    outputs: Mapping[str, Mapping[str, Any]] | None = None,
    begun: bool = False,
    claimed: bool = True,
    there: Sequence[Mapping[str, Any]] = (),
    namespace: str | None = None,
    **section: Any,
) -> Recorder:
    """One pull secret.

    begun: whether it was ready before. claimed: whether the project is known in a preview. there: entries of
    the project. namespace: one of somebody else's. section: what the configuration says besides.
    """

    def program() -> None:
        google = pulumi_gcp.Provider(START, project="fleet-1")
        decision = decide(cluster)
        remembers = decision.may_have_one
        project = pulumi.Output.from_input("fleet-1") if claimed else google.urn.apply(_unknown)
        entry = {"name": cluster.name, "generation": cluster.generation, "pullSecretFrom": "quay"}
        args = PullSecretArgs(
            section=PullSecretsSection.model_validate({"clusters": {"cls-1": entry}, **section}),
            cluster=cluster,
            credentials=Credentials({"quay": TEXT, "org": ORG}),
            owner="owner",
            project=cluster.project and project,
            namespace=namespace or "clusters-cls-1",
            declares_namespace=namespace is None,
            start=google,  # any resource will do
            begun=pulumi.Output.from_input(begun) if remembers else None,
        )
        made = PullSecret("cls-1", args, pulumi.ResourceOptions(providers=[google]))
        pulumi.export("status", made.status)
        pulumi.export("skipped", made.skipped)

    return record(
        program,
        preview=preview,
        outputs=({} if preview else UPDATED) | dict(outputs or {}),
        calls={GET_SECRETS: {"secrets": [*there]}},
    )


def _unknown(_: object) -> str:
    return cast("str", pulumi.UNKNOWN)


def types(recorder: Recorder) -> set[str]:
    return {one.type for one in recorder.registrations} - {COMPONENT, "pulumi:providers:gcp"}


def test_an_entry_is_automatic_labelled_sixfold_and_abandoned() -> None:
    entry = declared().named(ENTRY, "cls-1-entry")
    assert entry.own_inputs == {
        "project": "fleet-1",
        "secretId": "hyperfleet-cls-1-pull-secret",
        "labels": {**secret_labels("cls-1"), "cluster-name": "east"},
        "replication": {"auto": {}},
        "deletionProtection": False,
        "deletionPolicy": "ABANDON",
    }
    assert len(entry.inputs["labels"]) == 6
    assert entry.request.retainOnDelete


@tabled("found, declared_as")
def test_an_entry_that_is_there_keeps_its_replication_whatever_is_asked_for(
    found: Mapping[str, Any], declared_as: Mapping[str, Any]
) -> None:
    """Another one would have the provider delete the entry, to make it anew."""
    there = [{"secretId": "hyperfleet-cls-1-pull-secret", "labels": {}, "replications": [found]}]
    entry = declared(there=there, locations=["us-east1"]).named(ENTRY, "cls-1-entry")
    assert entry.inputs["replication"] == declared_as


def test_an_entry_that_was_imported_is_the_components_wherever_the_import_has_put_it() -> None:
    (alias,) = declared().named(ENTRY, "cls-1-entry").request.aliases
    assert alias.spec.noParent


def test_the_verification_knows_the_very_version_and_a_secret_digest_and_no_byte() -> None:
    verification = declared().named(VERIFICATION, "cls-1-verification")
    assert {key: value for key, value in verification.own_inputs.items() if value is not None} == {
        "project": "fleet-1",
        "secretId": "hyperfleet-cls-1-pull-secret",
        "version": "3",
        "owner": "owner",
        "digest": Secret(DIGEST),
        "namespace": "clusters-cls-1",
        "secretName": "cls-1-pull-secret",
    }


def test_the_cluster_reads_a_docker_config_that_says_where_it_comes_from() -> None:
    secret = declared().named(KUBERNETES_SECRET, "cls-1-secret")
    assert secret.own_inputs == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": table(__file__, "METADATA"),
        "type": "kubernetes.io/dockerconfigjson",
        "data": Secret({".dockerconfigjson": base64.b64encode(TEXT.encode()).decode()}),
    }


def test_another_generation_alone_adds_no_version_and_is_noted_and_reported() -> None:
    before, after = (
        {one.name: one.inputs for one in recorder.registrations}
        for recorder in (
            declared(replace(CLUSTER, generation=generation), hyperfleet=HYPERFLEET) for generation in (2, 3)
        )
    )
    assert {name for name in before if before[name] != after[name]} == {
        "cls-1",
        "cls-1-secret",
        "cls-1-status",
    }
    note = after["cls-1-secret"]["metadata"]["annotations"]
    assert note["hyperfleet.io/generation"] == "3"


def test_the_order_is_entry_version_verification_retention_secret_report_and_back_again() -> None:
    recorder = declared(hyperfleet=HYPERFLEET)
    status = recorder.named(STATUS, "cls-1-status")
    secret = recorder.named(KUBERNETES_SECRET, "cls-1-secret")
    chain = ["cls-1-entry", "cls-1-version", "cls-1-verification", "cls-1-retention"]
    for number, name in enumerate(chain[1:], start=1):
        one = next(each for each in recorder.registrations if each.name == name)
        assert recorder.waits_for(one) >= {*chain[:number]}
    assert recorder.waits_for(secret) == {START, *chain, "cls-1-namespace"}
    assert recorder.waits_for(status) == {START, *chain, "cls-1-namespace", "cls-1-secret"}


def test_rights_are_given_on_the_one_entry() -> None:
    members = declared(reader=READER, adapter=ADAPTER).of_type(MEMBER)
    assert {name: (one.inputs["role"], one.inputs["member"]) for name, one in members.items()} == {
        "cls-1-reader-accessor": (
            "roles/secretmanager.secretAccessor",
            f"serviceAccount:{READER['serviceAccount']}",
        ),
        "cls-1-adapter-viewer": ("roles/secretmanager.viewer", f"serviceAccount:{ADAPTER['serviceAccount']}"),
        "cls-1-adapter-adder": (
            "roles/secretmanager.secretVersionAdder",
            f"serviceAccount:{ADAPTER['serviceAccount']}",
        ),
        "cls-1-adapter-accessor": (
            "roles/secretmanager.secretAccessor",
            f"serviceAccount:{ADAPTER['serviceAccount']}",
        ),
    }
    assert {(one.inputs["secretId"], one.inputs["project"]) for one in members.values()} == {
        ("hyperfleet-cls-1-pull-secret", "fleet-1")
    }


def test_a_report_holds_what_the_contract_wants() -> None:
    status = declared(hyperfleet=HYPERFLEET).named(STATUS, "cls-1-status")
    assert (status.inputs["cluster"], status.inputs["generation"]) == ("cls-1", 2)
    assert [(one["type"], one["status"], one["reason"]) for one in status.inputs["conditions"]] == [
        ("Applied", "True", "SecretCreated"),
        ("Available", "True", "SecretAvailable"),
        ("Health", "True", "Healthy"),
    ]
    assert status.inputs["data"] == table(__file__, "REPORTED")


def test_the_outputs_tell_how_it_stands_and_no_byte_of_it() -> None:
    recorder = declared()
    told = recorder.stack_outputs["status"]
    assert {
        key: told[key] for key in ("generation", "secretId", "version", "namespace", "secretName", "skipped")
    } == table(__file__, "TOLD")
    assert [one["status"] for one in told["conditions"]] == ["True", "True", "True"]
    assert "sentinel" not in repr(plain(told))


def test_one_that_was_overtaken_is_told_as_not_healthy() -> None:
    overtaken = {VERIFICATION: {**UPDATED[VERIFICATION], "overtaken": "version 4 is the latest"}}
    told = declared(outputs=overtaken).stack_outputs["status"]
    assert told["conditions"][2] == {
        "type": "Health",
        "status": "False",
        "reason": "VersionOvertaken",
        "message": "version 4 is the latest",
    }


@pytest.mark.parametrize("on_delete", Retention)
def test_the_clusters_own_namespace_goes_only_with_everything_else(on_delete: Retention) -> None:
    namespace = declared(onDelete=on_delete).named(NAMESPACE, "cls-1-namespace")
    assert namespace.own_inputs["metadata"] == {"name": "clusters-cls-1"}
    assert namespace.request.retainOnDelete is (on_delete is not Retention.DESTROY)


def test_a_preview_knows_no_version_and_registers_the_same() -> None:
    before, after = declared(preview=True), declared()
    names = [{(one.type, one.name) for one in recorder.registrations} for recorder in (before, after)]
    assert names[0] == names[1]
    assert before.named(VERIFICATION, "cls-1-verification").inputs["version"] == Unknown()
    assert before.named(VERSION, "cls-1-version").inputs["secretData"] == Secret(TEXT)


@pytest.mark.parametrize("preview", [True, False])
def test_a_cluster_that_waits_registers_nothing_but_itself_with_its_reasons(preview: bool) -> None:
    recorder = declared(WAITING, preview=preview)
    (component,) = recorder.of_type(COMPONENT).values()
    assert types(recorder) == set()
    assert component.inputs["skipped"] == ["adapter dns reports False"]
    assert recorder.stack_outputs["skipped"] == ["adapter dns reports False"]
    assert [
        (one["type"], one["status"], one["reason"]) for one in recorder.stack_outputs["status"]["conditions"]
    ] == [
        ("Applied", "False", "PreconditionsNotMet"),
        ("Available", "False", "PreconditionsNotMet"),
        ("Health", "True", "Healthy"),
    ]


@pytest.mark.parametrize(
    ("cluster", "reported"),
    [
        (WAITING, True),
        (replace(CLUSTER, provider="aws"), True),
        (replace(CLUSTER, known=False), False),
        (replace(CLUSTER, phase=Phase.DELETING), False),
        (replace(CLUSTER, deleted_time="2026-01-01T00:00:00Z"), False),
    ],
    ids=["waiting", "lacking", "unknown", "deleting", "deleted"],
)
def test_hyperfleet_hears_of_a_skipped_cluster_that_it_keeps(cluster: Cluster, reported: bool) -> None:
    recorder = declared(cluster, hyperfleet=HYPERFLEET)
    told = [one.inputs["conditions"] for one in recorder.of_type(STATUS).values()]
    assert [[one["status"] for one in each] for each in told] == [["False", "False", "True"]] * reported


@pytest.mark.parametrize("preview", [True, False])
@cases(
    "cluster",
    {
        "adapter-waits": WAITING,
        "being-deleted": replace(CLUSTER, phase=Phase.DELETING),
        "unknown-to-hyperfleet": replace(CLUSTER, known=False),
    },
)
def test_a_cluster_that_was_ready_once_keeps_its_pull_secret_whatever_is_reported(
    cluster: Cluster, preview: bool
) -> None:
    recorder = declared(cluster, preview=preview, begun=True)
    (component,) = recorder.of_type(COMPONENT).values()
    assert types(recorder) >= {ENTRY, VERSION, VERIFICATION, RETENTION, KUBERNETES_SECRET}
    assert component.inputs["skipped"] == []
    assert recorder.stack_outputs["skipped"] == []


@pytest.mark.parametrize("preview", [True, False])
def test_a_cluster_that_hyperfleet_deletes_keeps_nothing(preview: bool) -> None:
    since = "2026-01-01T00:00:00Z"
    recorder = declared(replace(CLUSTER, deleted_time=since), preview=preview, begun=True)
    assert types(recorder) == set()
    assert recorder.stack_outputs["skipped"] == ["HyperFleet deletes the cluster"]


@tabled("asked, told")
def test_an_entry_that_stays_as_it_is_is_told_with_what_is_asked_for(
    asked: Mapping[str, Any], told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    kept = {"location": "europe-west1", "customerManagedEncryptions": [{"kmsKeyName": KEY}]}
    replications = [{"autos": [], "userManageds": [{"replicas": [kept]}]}]
    there = [{"secretId": "hyperfleet-cls-1-pull-secret", "labels": {}, "replications": replications}]
    recorder = declared(hyperfleet=HYPERFLEET, there=there, **asked)
    assert caplog.messages == told
    assert recorder.named(STATUS, "cls-1-status").inputs["data"]["replicationPolicy"] == "user-managed"


@tabled("asked, replication")
def test_a_new_entry_is_encrypted_with_the_keys_of_its_places(
    asked: Mapping[str, Any], replication: Mapping[str, Any]
) -> None:
    assert declared(**asked).named(ENTRY, "cls-1-entry").inputs["replication"] == replication


@pytest.mark.parametrize("preview", [True, False])
def test_pull_secrets_that_merge_are_stored_as_one_and_the_preview_says_who_wins(
    preview: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    recorder = declared(preview=preview, pullSecretFrom="org")
    auths = {"quay.io": {"auth": "dXNlcjpzZW50aW5lbA=="}, "ghcr.io": {"auth": "dTpw"}}
    text = json.dumps({"auths": auths}, separators=(",", ":"))
    assert recorder.named(VERSION, "cls-1-version").own_inputs["secretData"] == Secret(text)
    encoded = base64.b64encode(text.encode()).decode()
    assert recorder.named(KUBERNETES_SECRET, "cls-1-secret").own_inputs["data"] == Secret(
        {".dockerconfigjson": encoded}
    )
    digest = recorder.named(VERIFICATION, "cls-1-verification").own_inputs["digest"]
    assert digest == Secret(digest_of("owner", text.encode()))
    own, org = "credfleet:pullSecrets.clusters.cls-1.pullSecretFrom", "credfleet:pullSecrets.pullSecretFrom"
    assert [each for each in caplog.messages if "quay" in each] == [
        f"registry quay.io is that of {own}, not of {org}"
    ]


def test_labels_of_the_configuration_are_beside_hyperfleets() -> None:
    labels = declared(labels={"team": "platform"}).named(ENTRY, "cls-1-entry").inputs["labels"]
    assert labels == {**secret_labels("cls-1", "east"), "team": "platform"}
