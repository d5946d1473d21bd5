"""Pull secrets of a whole stack: what the configuration's references become."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
import pytest

from components.fleet import Fleet
from tests.support.recorder import Recorder, Secret, record
from tests.support.stacks import SECRET_KEYS, settings, stack

CLAIM = "pulumi-python:dynamic/credfleet:AccountClaim"
VERIFICATION = "pulumi-python:dynamic/credfleet:PullSecretVerification"
VERSION = "gcp:secretmanager/secretVersion:SecretVersion"
ENTRY = "gcp:secretmanager/secret:Secret"
MEMBER = "gcp:secretmanager/secretIamMember:SecretIamMember"
NAMESPACE = "kubernetes:core/v1:Namespace"
KUBERNETES_SECRET = "kubernetes:core/v1:Secret"
START = "pulumi-python:dynamic/credfleet:PullSecretStart"
TOLD = {"apiUrl": "http://127.0.0.1:1"}
CLAIMED = {"secretName": "gcp", "accountId": "acme-prod-1"}
OUTPUTS: Mapping[str, Mapping[str, Any]] = {
    CLAIM: CLAIMED,
    VERSION: {"version": "1"},
    VERIFICATION: {"reference": "r", "verifiedAt": "t", "overtaken": ""},
}
SOUND = '{"auths": {"quay.io": {"auth": "dXNlcjpzZW50aW5lbA=="}}}'
ADAPTERS = dict.fromkeys(("validation", "dns", "placement"), "True")


def cluster(**more: Any) -> dict[str, Any]:
    given = {"name": "east", "generation": 1, "project": "fleet-project", "pullSecretFrom": "quay"}
    return {**given, "adapters": ADAPTERS, **more}


def declared(
    clusters: dict[str, Any],
    *,
    preview: bool = False,
    outputs: Mapping[str, Mapping[str, Any]] = OUTPUTS,
    credential: str = SOUND,
    **section: Any,
) -> Recorder:
    values = stack(
        credentials__quay=credential,
        tenants__acme__accounts__gcp={"type": "gcp"},
        accountPool__members__gcp={"type": "gcp", "accountId": "acme-prod-1", "credentialsFrom": "aws-1"},
        cluster__existingNamespaces=["clusters-there"],
        pullSecrets={"clusters": clusters, **section},
    )

    def program() -> None:
        fleet = Fleet("fleet", settings(values))
        pulumi.export("pullSecrets", fleet.pull_secrets)
        pulumi.export("skipped", fleet.skipped)

    return record(
        program,
        preview=preview,
        config=values,
        secret_keys=SECRET_KEYS,
        outputs={} if preview else outputs,
        calls={"gcp:secretmanager/getSecrets:getSecrets": {"secrets": []}},
    )


def test_a_section_whose_last_cluster_has_left_declares_nothing() -> None:
    outputs = declared({}).stack_outputs
    assert (outputs["pullSecrets"], outputs["skipped"]) == ({}, {})


def test_the_account_a_tenant_claims_names_the_project() -> None:
    recorder = declared({"cls-1": cluster(project={"account": "acme/gcp"})})
    entry = recorder.named(ENTRY, "cls-1-entry")
    assert entry.inputs["project"] == "acme-prod-1"
    assert any(urn.endswith("::acme/gcp") for urn in entry.dependencies)


def test_an_account_that_does_not_say_its_id_is_told_with_the_fix() -> None:
    nameless = {**OUTPUTS, CLAIM: {**CLAIMED, "accountId": None}}
    with pytest.raises(pulumi.RunError, match="give accountId to the member that was claimed"):
        declared({"cls-1": cluster(project={"account": "acme/gcp"})}, outputs=nameless)


def test_the_stack_declares_the_namespaces_nobody_else_does() -> None:
    clusters = {"cls-1": cluster(), "there": cluster()}
    recorder = declared(clusters)
    assert {name for name in recorder.of_type(NAMESPACE) if "cls" in name or "there" in name} == {
        "cls-1-namespace"
    }
    secret = recorder.named(KUBERNETES_SECRET, "there-secret")
    assert secret.inputs["metadata"]["namespace"] == "clusters-there"


def test_a_tenants_namespace_is_waited_for() -> None:
    recorder = declared({"acme": cluster()}, namespaceTemplate="tenant-{id}")
    secret = recorder.named(KUBERNETES_SECRET, "acme-secret")
    assert secret.inputs["metadata"]["namespace"] == "tenant-acme"
    assert recorder.named(NAMESPACE, "acme-namespace").urn in secret.dependencies


def test_a_credential_is_handed_on_byte_for_byte_and_the_cluster_tells_whose_digest_it_is() -> None:
    text = f" {SOUND}\n"
    recorder = declared({"cls-1": cluster(), "cls-2": cluster()}, credential=text)
    assert recorder.named(VERSION, "cls-1-version").inputs["secretData"] == Secret(text)
    data = recorder.named(KUBERNETES_SECRET, "cls-1-secret").inputs["data"]
    assert data == Secret({".dockerconfigjson": base64.b64encode(text.encode()).decode()})
    verifications = recorder.of_type(VERIFICATION).values()
    assert {one.inputs["owner"] for one in verifications} == {
        "pulumi/organization/credfleet/dev/pullSecrets/cls-1",
        "pulumi/organization/credfleet/dev/pullSecrets/cls-2",
    }
    assert len({one.inputs["digest"].value for one in verifications}) == 2


def test_a_cluster_may_have_a_reader_of_its_own() -> None:
    def account(name: str) -> dict[str, str]:
        return {"serviceAccount": f"{name}@fleet-project.iam.gserviceaccount.com"}

    clusters = {"cls-1": cluster(), "cls-2": cluster(reader=account("other"))}
    members = declared(clusters, reader=account("all")).of_type(MEMBER)
    assert {name: one.inputs["member"].partition("@")[0] for name, one in members.items()} == {
        "cls-1-reader-accessor": "serviceAccount:all",
        "cls-2-reader-accessor": "serviceAccount:other",
    }


def starts(clusters: dict[str, Any], **section: Any) -> set[str]:
    return {*declared(clusters, **section).of_type(START)}


def test_what_remembers_a_cluster_outlives_all_that_is_declared_for_it() -> None:
    recorder = declared({"cls-1": cluster()})
    (start,) = recorder.of_type(START).values()
    for type_, name in ((ENTRY, "cls-1-entry"), (NAMESPACE, "cls-1-namespace")):
        assert start.urn in recorder.named(type_, name).dependencies


@pytest.mark.parametrize(
    ("hyperfleet", "remembered"),
    [
        ({}, {"cls-1-start"}),
        ({"hyperfleet": {**TOLD, "contract": "v1"}}, {"cls-1-start"}),
        ({"hyperfleet": TOLD}, {"cls-1-start", "cls-2-start"}),
    ],
    ids=["nobody-is-told", "by-the-older-contract", "by-the-newest"],
)
def test_a_hyperfleet_hears_of_every_clusters_end_also_of_one_without_pull_secret(
    hyperfleet: dict[str, Any], remembered: set[str]
) -> None:
    assert starts({"cls-1": cluster(), "cls-2": cluster(provider="aws")}, **hyperfleet) == remembered


@pytest.mark.parametrize("preview", [True, False])
def test_what_is_skipped_is_an_output_of_the_stack_with_its_reasons(preview: bool) -> None:
    clusters = {
        "cls-1": cluster(phase="Ready", adapters={}),
        "cls-2": cluster(adapters={**ADAPTERS, "dns": "False"}),
        "cls-3": cluster(project={"account": "acme/gcp"}, adapters={}),
        "cls-4": cluster(provider="aws"),
    }
    assert declared(clusters, preview=preview).stack_outputs["skipped"] == {
        "pull secret cls-2": "adapter dns reports False",
        "pull secret cls-3": "adapter validation has not reported; adapter dns has not reported;"
        " adapter placement has not reported",
        "pull secret cls-4": "its provider is aws, and Secret Manager is only there on gcp",
    }


def test_what_was_observed_decides_where_the_stack_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    since = "2026-01-01T00:00:00Z"
    seen = {"cls-1": {"adapters": ADAPTERS}, "cls-3": {"adapters": ADAPTERS, "deletedTime": since}}
    (tmp_path / "observed.json").write_text(json.dumps({"observedAt": since, "clusters": seen}))
    monkeypatch.chdir(tmp_path)
    given = cluster()
    del given["adapters"]
    values = stack(
        credentials__quay=SOUND,
        pullSecrets={
            "clusters": {"cls-1": given, "cls-2": given, "cls-3": given},
            "adaptersFrom": "observed.json",
            "hyperfleet": TOLD,
        },
    )

    def program() -> None:
        pulumi.export("skipped", Fleet("fleet", settings(values, tmp_path)).skipped)

    recorder = record(
        program,
        config=values,
        secret_keys=SECRET_KEYS,
        outputs=OUTPUTS,
        calls={"gcp:secretmanager/getSecrets:getSecrets": {"secrets": []}},
    )
    assert [*recorder.of_type(ENTRY)] == ["cls-1-entry"]
    assert [*recorder.of_type(START)] == ["cls-1-start", "cls-2-start"]
    skipped = recorder.stack_outputs["skipped"]
    assert {*skipped} == {"pull secret cls-2", "pull secret cls-3"}
    assert skipped["pull secret cls-3"] == "HyperFleet deletes the cluster"
