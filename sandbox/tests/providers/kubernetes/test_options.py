"""Which options of the provider are served."""

import pytest
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Value
from pulumi_sandbox.providers.kubernetes.connection import KubernetesOptions
from pulumi_sandbox.providers.kubernetes.provider import problems, read_options


@pytest.mark.parametrize(
    "config",
    [
        {"kubeconfig": "/path", "context": "dev", "namespace": "ns"},
        {"kubeconfig": {"clusters": []}},
        {"enableSecretMutable": True, "enableServerSideApply": True, "enableConfigMapMutable": False},
        {"enableSecretMutable": "true", "enableServerSideApply": "true", "enablePatchForce": "false"},
        {"version": "4.34.2"},
        {"enablePatchForce": UNKNOWN, "namespace": None, "renderYamlToDirectory": ""},
    ],
)
def test_options_that_are_served_are_taken_as_values_and_as_texts(config: Properties):
    assert problems(config) == []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("enableServerSideApply", "false"),
        ("cluster", "c"),
        ("enablePatchForce", "true"),
        ("upsertExistingObjects", True),
        ("renderYamlToDirectory", "out"),
        ("kubeClientSettings", {"qps": 5}),
        ("enableSecretMutable", "yes"),
        ("namespace", 5),
        ("enableSecretMutabel", "true"),
    ],
)
def test_options_that_are_not_served_are_refused_by_name(option: str, value: Value):
    assert [problem.place for problem in problems({option: value, "context": "dev"})] == [option]


def test_options_are_read_from_the_texts_the_engine_gives():
    read = read_options({"namespace": "ns", "enableSecretMutable": "true"})
    assert read == KubernetesOptions(namespace="ns", secrets_mutable=True)
