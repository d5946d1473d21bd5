"""Which options of the provider are served, and which changes of them replace objects."""

import pytest
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Value
from pulumi_sandbox.providers.kubernetes import options
from pulumi_sandbox.providers.kubernetes.kubeconfig import Kubeconfig

HERE: Properties = {"server": "https://here"}
THERE: Properties = {"server": "https://there"}
CONFIGS = {
    "one": Kubeconfig(
        "one",
        {
            "current-context": "dev",
            "contexts": [
                {"name": "dev", "context": {"cluster": "here", "user": "a"}},
                {"name": "ops", "context": {"cluster": "here", "user": "b"}},
                {"name": "far", "context": {"cluster": "there"}},
            ],
            "clusters": [{"name": "here", "cluster": HERE}, {"name": "there", "cluster": THERE}],
        },
    )
}
CONFIGS["moved"] = Kubeconfig("moved", {**CONFIGS["one"].content, "current-context": "far"})


def replacing(old: Properties, new: Properties) -> list[str]:
    return options.replacing_keys(old, new, CONFIGS.get)


@pytest.mark.parametrize(
    "config",
    [
        {"kubeconfig": "/path", "context": "dev", "cluster": "c", "namespace": "ns"},
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


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param({"kubeconfig": "one"}, {"kubeconfig": "moved"}, ["kubeconfig"], id="another cluster"),
        pytest.param({"kubeconfig": "one"}, {"kubeconfig": "one", "context": "ops"}, [], id="another user"),
        pytest.param(
            {"kubeconfig": "one"}, {"kubeconfig": "one", "context": "far"}, ["context"], id="far context"
        ),
        pytest.param(
            {"kubeconfig": "one"}, {"kubeconfig": "one", "cluster": "there"}, ["cluster"], id="far cluster"
        ),
        pytest.param({"kubeconfig": "gone"}, {"kubeconfig": "one"}, [], id="the old one is unreadable"),
        pytest.param({"kubeconfig": "one"}, {"kubeconfig": UNKNOWN}, ["kubeconfig"], id="not known yet"),
        pytest.param({"namespace": "a"}, {"namespace": "b"}, [], id="another default namespace"),
        pytest.param(
            {"kubeconfig": "one", "clusterIdentifier": "x"},
            {"kubeconfig": "moved", "clusterIdentifier": "x"},
            [],
            id="the identifier says it is the same",
        ),
        pytest.param(
            {"clusterIdentifier": "x"},
            {"clusterIdentifier": "y"},
            ["clusterIdentifier"],
            id="another identifier",
        ),
    ],
)
def test_only_options_that_lead_to_another_cluster_replace_the_objects(
    old: Properties, new: Properties, expected: list[str]
):
    assert replacing(old, new) == expected
