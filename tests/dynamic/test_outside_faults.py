"""Every method of every dynamic provider fails in our words, whatever goes wrong outside of it.

It does not prove that the words are the best ones; the files of the providers do.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from pulumi.dynamic import ResourceProvider

from components.dynamic import Shell, camel_case
from components.secret_stores.admission import document_of
from tests.support.dynamic_host import ROOT, Host, Properties, Recorded, dynamic_host
from tests.support.outside_faults import FAULTS, QUOTED, TOKEN, outside
from tests.support.stores import cluster_store, provider, ref

FROZEN: Final = Path(__file__).with_name("frozen_paths.txt").read_text().split()
METHODS: Final = ("check", "diff", "create", "read", "update", "delete")

NAMESPACE: Final = {"namespace": "ns"}
VERSION: Final = {"project": "p", "secretId": "s", "version": "2"}
COMPOSED: Final = {
    **NAMESPACE,
    "targetName": "made",
    "owner": "pulumi/o/p/s/it",
    "sources": [{"namespace": "ns", "name": "given", "place": "credfleet:it", "declared": False}],
    "labels": {},
    "content": "",
}
STORE = provider("Kubernetes", {"remoteNamespace": "ns", "auth": {"serviceAccount": {"name": "reader"}}})
STORED: Final = {
    **NAMESPACE,
    "owner": "pulumi/o/p/s/it",
    "store": document_of(cluster_store(providerRef=ref(STORE), retrySettings={"maxRetries": 0})),
    "provider": document_of(STORE),
    "labels": {},
}
NAMED: Final = {"name": "it", "store": {"kind": "ClusterSecretStore", "name": "store"}}
BOUND: Final = {"instance_guid": "i", "instance_name": "d", "binding_guid": "b", "tags": [], "label": "sql"}
PUSHED: Final = {"secret": "given", "key": "p", "remoteKey": "there", "property": "p"}

RESOURCES: Final[Mapping[str, tuple[Properties, Properties, Properties]]] = {
    "MemberSecretProvider": ({**COMPOSED, "recipe": {}, "annotations": {}}, {"digest": "d"}, {}),
    "AccountClaimProvider": (
        {**NAMESPACE, "tenant": "acme", "type": "aws", "holder": "pulumi/o/p/s/acme/0"},
        {
            "record": "r",
            "recordUid": "u",
            "sequence": 1,
            "phase": "Bound",
            "secretName": "m",
            "poolPolicy": "clean",
        },
        {"poolPolicy": "retain"},
    ),
    "PoolRosterProvider": (
        {
            **NAMESPACE,
            "partitionKeys": [],
            "members": {"m": {"type": "aws", "accountId": "1", "labels": {}, "annotations": {}}},
            "allowDestroy": False,
            "claims": [],
        },
        {},
        {"members": {}},
    ),
    "PoolSealProvider": ({**NAMESPACE, "allowDestroy": False}, {}, {"allowDestroy": True}),
    "AsoProjectionProvider": (
        {**COMPOSED, "recipe": {"plain": {}, "proofs": ["p"], "settings": [], "strict": False}},
        {"digest": "d"},
        {},
    ),
    "OperatorPinProvider": (
        {**NAMESPACE, "account": "aso", "trusted": ["m i a", "n i a"], "place": "credfleet:it"},
        {},
        {"trusted": ["m i a"]},
    ),
    "SubscriptionPinProvider": (
        {"secret": "ns/it", "subscriptionId": "1", "allowChange": False, "place": "credfleet:it"},
        {},
        {},
    ),
    "SecretProjectionProvider": (
        {
            "targetNamespace": "ns",
            "targetName": "copy",
            "owner": "o",
            "sourceNamespace": "pool",
            "sourceName": "m",
        },
        {"digest": "d"},
        {},
    ),
    "PullSecretCopyProvider": ({**COMPOSED, "recipe": {}, "annotations": {}}, {"digest": "d"}, {}),
    "PullSecretRetentionProvider": (
        {**VERSION, "onReplace": "keep", "onDelete": "disable"},
        {"replaced": ""},
        {"version": "3", "onReplace": "disable"},
    ),
    "PullSecretStartProvider": (
        {"cluster": "c", "ready": True, "project": "p", "secretId": "s", **NAMESPACE, "secretName": "n"},
        {"begun": True},
        {},
    ),
    "PullSecretStatusProvider": (
        {"apiUrl": "SERVER", "cluster": "c", "generation": 1, "conditions": [], "data": {}},
        {"trouble": "t"},
        {},
    ),
    "PullSecretVerificationProvider": (
        {**VERSION, "owner": "o", "digest": "d", **NAMESPACE, "secretName": "n"},
        {"state": "ENABLED", "overtaken": ""},
        {"version": "3"},
    ),
    "PullSecretVersionProvider": (
        {
            "project": "p",
            "secretId": "s",
            "owner": "o",
            **NAMESPACE,
            "source": COMPOSED["sources"][0],
            "strict": False,
        },
        {"version": "1", "digest": "d"},
        {},
    ),
    "EsoDeliveryProvider": (
        {
            "objects": [
                {
                    "place": "credfleet:it",
                    "apiVersion": "external-secrets.io/v1",
                    "kind": "ExternalSecret",
                    "namespace": "ns",
                    "name": "it",
                }
            ],
            "within": "200ms",
        },
        {"undelivered": {}},
        {},
    ),
    "EsoLookoutProvider": (
        {
            "group": "external-secrets.io",
            "reads": [
                {"place": "credfleet:it", **NAMESPACE, "name": "it", "target": "copy", "owner": "o"},
            ],
        },
        {"kinds": []},
        {},
    ),
    "LoginSecretProvider": ({**COMPOSED, "recipe": {"keys": ["token"]}}, {"digest": "d"}, {}),
    "SecretPushProvider": (
        {
            **STORED,
            "push": {**NAMED, "data": [PUSHED], "updatePolicy": "Replace", "deletionPolicy": "Delete"},
        },
        {"places": [], "digest": "d"},
        {},
    ),
    "SecretReadProvider": (
        {**STORED, "target": "copy", "read": {**NAMED, "data": {"p": {"key": "db", "property": "p"}}}},
        {"digest": "d"},
        {},
    ),
    "ServiceMigrationProvider": (
        {**NAMESPACE, "targetName": "made", "owner": "o", "instanceGuid": "g", "instance": "queue"},
        {"digest": "d"},
        {"removeLegacy": True},
    ),
    "ServiceSecretProvider": (
        {
            **COMPOSED,
            "recipe": {
                "form": "binding",
                "instances": [{"numbers": "float", "strict": False, "bound": BOUND, "takesFile": False}],
            },
        },
        {"digest": "d"},
        {},
    ),
    "WorkloadBindingProvider": (
        {
            **NAMESPACE,
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "shop",
            "vcapSecret": "v",
            "takesFile": False,
            "directories": {},
            "content": "",
        },
        {},
        {"takesFile": True},
    ),
}
"""Of each class: inputs, the outputs of a state, and what of the inputs an update changes."""


def classes() -> dict[str, type[Shell]]:
    split = (each.partition(":") for each in FROZEN)
    return {name: getattr(importlib.import_module(module), name) for module, _, name in split}


def said(call: Callable[[], Any]) -> list[str]:
    """Return what a call failed with, or what a check refused."""
    try:
        answer = call()
    except grpc.RpcError as error:
        return [str(error.details())]
    return [f"pulumi.errors.RunError: {each}" for each in answer] if isinstance(answer, list) else []


@pytest.mark.parametrize("fault", FAULTS)
def test_methods_with_a_fault_outside_fail_in_our_words(fault: str, tmp_path: Path) -> None:
    path = f"{ROOT / 'tests/support/impatient'}:{ROOT}"
    with (
        outside(fault, tmp_path) as config,
        dynamic_host(config, {"PYTHONPATH": path}) as host,
        ThreadPoolExecutor(16) as calling,
    ):
        calls = {
            (name, method): calling.submit(said, call)
            for name in RESOURCES
            for method, call in calls_of(name, host, config["pullSecrets"]["hyperfleet"]["apiUrl"]).items()
        }
        told = {of: call.result() for of, call in calls.items()}
    assert {of: text for of, texts in told.items() for text in texts if not is_in_our_words(text)} == {}
    if fault.startswith("401"):
        advice = "run `kubectl config set-credentials u --kubeconfig "
        for name in LOOKS_IN_CHECK:
            (text,) = told[name, "check"]
            assert text.startswith("pulumi.errors.RunError: not-signed-in: "), name
            assert advice in text, name


def calls_of(name: str, host: Host, server: str) -> Mapping[str, Callable[[], Any]]:
    """Return a call of each method of a class."""
    inputs, outputs, change = RESOURCES[name]
    inputs = {**inputs, **({"apiUrl": server} if "apiUrl" in inputs else {})}
    of = host.provider(classes()[name]())
    inputs = full(classes()[name], inputs)
    old, news = Recorded("id", inputs, {**inputs, **outputs}), {**inputs, **change}
    return {
        "check": lambda: of.refusals(news, inputs),
        "diff": lambda: of.diff_unchecked(old, old.inputs),
        "create": lambda: of.create_unchecked(inputs),
        "read": lambda: of.refresh(old),
        "update": lambda: of.update_unchecked(old, news),
        "delete": lambda: of.delete(old),
    }


def is_in_our_words(text: str) -> bool:
    """Return whether a failure has our shape, and nothing of a traceback, a token or an answer."""
    foreign = ("Traceback", "RunError: defect", TOKEN, QUOTED)
    return (
        text.startswith("pulumi.errors.RunError: ")
        and "\n→ " in text
        and not any(each in text for each in foreign)
    )


LOOKS_IN_CHECK: Final = frozenset(RESOURCES) - {
    "AccountClaimProvider",  # its roster looks
    "PoolSealProvider",
    "SubscriptionPinProvider",
    "PullSecretRetentionProvider",
    "PullSecretStartProvider",
    "PullSecretStatusProvider",
    "PullSecretVerificationProvider",
}
"""Classes whose check asks the cluster."""


def full(of: type[Shell], inputs: Properties) -> Properties:
    """Return inputs with the defaults that a check fills in, without its look at anything outside."""
    defaults = {
        camel_case(each.name): each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(of.args)
        if each.default is not MISSING or each.default_factory is not MISSING
    }
    return {**defaults, **inputs}


def test_every_frozen_class_has_its_case_and_overrides_no_method_of_the_host() -> None:
    assert sorted(RESOURCES) == sorted(classes())
    for each in classes().values():
        for method in ("configure", *METHODS):
            assert getattr(each, method) is getattr(Shell, method)
            assert getattr(Shell, method) is not getattr(ResourceProvider, method)
