"""Which kubeconfig and context count, and that a broken one is never quoted."""

import json
from pathlib import Path

import pytest
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Properties
from pulumi_sandbox.providers.kubernetes import kubeconfig


def content(name: str, **cluster: str) -> Properties:
    return {
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}", **cluster}}],
        "contexts": [{"name": name, "context": {"cluster": name, "namespace": f"in-{name}"}}],
        "users": [{"name": name, "user": {}}],
    }


def test_a_kubeconfig_may_come_as_text():
    loaded = kubeconfig.load(json.dumps(content("dev")))
    assert loaded.cluster("", "") == {"server": "https://dev"}
    assert loaded.namespace("") == "in-dev"


def test_paths_in_a_file_are_meant_from_its_folder(tmp_path: Path):
    file = tmp_path / "config"
    file.write_text(json.dumps(content("dev", **{"certificate-authority": "ca.crt"})))
    cluster = kubeconfig.load(str(file)).cluster("", "")
    assert cluster == {"server": "https://dev", "certificate-authority": str(tmp_path / "ca.crt")}


def test_of_several_files_the_first_to_name_something_counts(tmp_path: Path):
    for name, server in (("a", "dev"), ("b", "ops"), ("c", "dev")):
        (tmp_path / name).write_text(json.dumps(content(server, source=name)))
    loaded = kubeconfig.load(":".join(str(tmp_path / name) for name in "axbc"))
    assert loaded.cluster("", "") == {"server": "https://dev", "source": "a"}
    assert loaded.cluster("ops", "") == {"server": "https://ops", "source": "b"}


def test_without_a_choice_the_kubeconfig_of_the_user_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mine").write_text(json.dumps(content("mine")))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "mine"))
    assert kubeconfig.load("").context_name("") == "mine"


def test_an_unknown_context_leads_to_no_cluster():
    assert kubeconfig.load(json.dumps(content("dev"))).cluster("prod", "") is None


@pytest.mark.parametrize("given", ["/nowhere/config", "{not: [yaml", "{}", "a: 1\nb: 2"])
def test_what_is_no_kubeconfig_is_refused_without_quoting_it(given: str):
    with pytest.raises(SandboxError) as refused:
        kubeconfig.load(given)
    assert refused.value.code == "kubeconfig-invalid"
    assert "yaml" not in str(refused.value)
    assert kubeconfig.load_if_readable(given) is None
