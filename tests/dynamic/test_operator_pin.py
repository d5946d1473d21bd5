"""What a preview refuses of a change of how ASO runs, in the genuine host, on an API server without nodes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from components.aso_credentials.provider import OperatorPinProvider
from tests.support.dynamic_host import Properties, Provider, Recorded, provided

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

ACCOUNT = "azureserviceoperator-default"
PLACE = "credfleet:asoCredentials"


provider = provided(OperatorPinProvider)


@pytest.fixture
def issuer(admin: DynamicClient) -> str:
    """Who issues the tokens of the tests' cluster."""
    answer = admin.request("GET", "/.well-known/openid-configuration", serialize=False)
    return str(json.loads(answer.data)["issuer"])


class Cluster:
    """The operator's namespace: what its settings say, and pods that were started."""

    def __init__(self, admin: DynamicClient, namespace: str) -> None:
        self._admin, self._namespace = admin, namespace

    def say(self, mode: str, manager: str = "pulumi-kubernetes-12345678") -> None:
        """Write the settings, as a stack or a chart does."""
        secrets = self._admin.resources.get(api_version="v1", kind="Secret")
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "aso-controller-settings", "namespace": self._namespace},
            "stringData": {"AZURE_WORKLOAD_IDENTITY_AUTH_MODE": mode},
        }
        secrets.server_side_apply(body=body, field_manager=manager, force_conflicts=True)

    def start(self, name: str, at: str, account: str = ACCOUNT) -> None:
        """Let a pod be seen as started."""
        pods = self._admin.resources.get(api_version="v1", kind="Pod")
        accounts = self._admin.resources.get(api_version="v1", kind="ServiceAccount")
        body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}}
        accounts.server_side_apply(
            body={**body, "metadata": {"name": account, "namespace": self._namespace}}, field_manager="tests"
        )
        spec = {"serviceAccountName": account, "containers": [{"name": "manager", "image": "none"}]}
        pods.create(body={"metadata": {"name": name}, "spec": spec}, namespace=self._namespace)
        state = {"running": {"startedAt": at}}
        running = {"name": "manager", "image": "none", "imageID": "", "ready": True, "restartCount": 0}
        body = {"status": {"containerStatuses": [{**running, "state": state}]}}
        pods.status.patch(
            name=name, namespace=self._namespace, body=body, content_type="application/merge-patch+json"
        )


@pytest.fixture
def cluster(admin: DynamicClient, namespace: str) -> Cluster:
    return Cluster(admin, namespace)


def pin(namespace: str, *trusted: str, **more: Any) -> Properties:
    return {
        "namespace": namespace,
        "account": ACCOUNT,
        "trusted": [*trusted],
        "allowChange": False,
        "place": PLACE,
        **more,
    }


def test_an_input_that_only_older_states_have_is_no_change(provider: Provider, namespace: str) -> None:
    trusted = f"relaxed https://a {ACCOUNT}"
    known = {**pin(namespace, trusted), "writesSettings": True}
    older = Recorded(namespace, known, known)
    assert not provider.is_changed(older, pin(namespace, trusted))
    assert provider.is_changed(older, pin(namespace, f"strict https://a {ACCOUNT}", trusted))


def test_another_mode_or_issuer_at_once_is_refused_and_both_together_pass(
    provider: Provider, namespace: str
) -> None:
    relaxed, strict = f"relaxed https://a {ACCOUNT}", f"strict https://a {ACCOUNT}"
    other = f"relaxed https://b {ACCOUNT}"
    before = pin(namespace, relaxed)
    for now in (strict, other):
        (reason,) = provider.refusals(pin(namespace, now), before)
        assert (
            f"formerly: {{workloadIdentityMode: relaxed, issuer: https://a, serviceAccount: {ACCOUNT}}}"
            in reason
        )
        assert provider.refusals(pin(namespace, now, relaxed), before) == []
        assert provider.refusals(pin(namespace, now, allowChange=True), before) == []
    assert provider.refusals(pin(namespace), before) == []  # no identity is left that trusts anybody
    assert provider.refusals(pin(namespace, strict)) == []


def test_the_former_trust_goes_when_the_operator_was_started_again_with_the_new_settings(
    provider: Provider, namespace: str, cluster: Cluster, issuer: str
) -> None:
    relaxed, strict = f"relaxed {issuer} {ACCOUNT}", f"strict {issuer} {ACCOUNT}"
    both, after = pin(namespace, strict, relaxed), pin(namespace, strict)
    (reason,) = provider.refusals(after, both)
    assert "do not say strict yet" in reason
    assert f"--namespace {namespace}" in reason
    cluster.say("strict")
    cluster.start("old", "2020-01-01T00:00:00Z")
    cluster.start("anothers", "2099-01-01T00:00:00Z", "default")
    (reason,) = provider.refusals(after, both)
    assert "was started since its settings changed" in reason
    assert provider.refusals(pin(namespace, strict, allowChange=True), both) == []
    assert (
        "do not say relaxed" in provider.refusals(pin(namespace, relaxed), pin(namespace, relaxed, strict))[0]
    )


def test_a_started_operator_and_the_published_issuer_end_a_change(
    provider: Provider, namespace: str, cluster: Cluster, issuer: str
) -> None:
    new, old = f"strict {issuer} {ACCOUNT}", f"relaxed https://old.example {ACCOUNT}"
    cluster.say("strict")
    cluster.start("new", "2099-01-01T00:00:00Z")
    assert provider.refusals(pin(namespace, new), pin(namespace, new, old)) == []
    other = f"strict https://other.example {ACCOUNT}"
    (reason,) = provider.refusals(pin(namespace, other), pin(namespace, other, old))
    assert f"issued by {issuer}" in reason
