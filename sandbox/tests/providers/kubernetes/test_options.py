"""Which options of the provider are served."""

import pytest
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Value
from pulumi_sandbox.providers.kubernetes import options


@pytest.mark.parametrize(
    "config",
    [
        {"kubeconfig": "/path", "context": "dev", "namespace": "ns"},
        {"kubeconfig": {"clusters": []}},
        {"enableSecretMutable": True, "enableServerSideApply": True, "enableConfigMapMutable": False},
        {"enableSecretMutable": "true", "enableServerSideApply": "true", "enablePatchForce": "false"},
        {"version": "4.34.2", "suppressHelmHookWarnings": "true", "helmReleaseSettings": "{}"},
        {"enablePatchForce": UNKNOWN, "namespace": None, "renderYamlToDirectory": ""},
    ],
)
def test_options_that_are_served_are_taken_as_values_and_as_texts(config: Properties):
    assert options.problems(config) == []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("enableServerSideApply", "false"),
        ("cluster", "c"),
        ("enablePatchForce", "true"),
        ("upsertExistingObjects", True),
        ("deleteUnreachable", "true"),
        ("skipUpdateUnreachable", True),
        ("renderYamlToDirectory", "out"),
        ("helmReleaseSettings", '{"driver": "secret"}'),
        ("kubeClientSettings", {"qps": 5}),
        ("enableSecretMutable", "yes"),
        ("namespace", 5),
        ("enableSecretMutabel", "true"),
    ],
)
def test_options_that_are_not_served_are_refused_by_name(option: str, value: Value):
    assert [problem.place for problem in options.problems({option: value, "context": "dev"})] == [option]


def test_options_are_read_from_the_texts_the_engine_gives():
    read = options.read({"namespace": "ns", "enableSecretMutable": "true"})
    assert read == options.KubernetesOptions(namespace="ns", secrets_mutable=True)
