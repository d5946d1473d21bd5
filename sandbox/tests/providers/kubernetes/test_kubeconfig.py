"""Which kubeconfig and context count, and that a broken one is never quoted."""

import json
from pathlib import Path

import pytest
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Properties, Value
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


def test_a_relative_path_is_meant_from_the_folder_of_the_program(tmp_path: Path):
    (tmp_path / "mine").write_text(json.dumps(content("mine")))
    assert kubeconfig.load("mine", tmp_path).context_name("") == "mine"


def test_plugins_for_credentials_see_no_passphrase_and_all_else_that_they_are_given():
    plugins: list[Value] = [{"command": "a", "env": [{"name": "A", "value": "1"}]}, {"command": "b"}]
    users: list[Value] = [{"name": "u", "user": {"exec": plugin}} for plugin in plugins]
    odd: list[Value] = [7, {"name": "x", "user": None}, {"name": "y", "user": {"token": "t"}}]
    shown = kubeconfig.Kubeconfig("", {"users": [*users, *odd]}).without_passphrase().content["users"]
    hidden = [
        {"name": name, "value": ""} for name in ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE")
    ]
    assert shown == [
        {"name": "u", "user": {"exec": {"command": "a", "env": [{"name": "A", "value": "1"}, *hidden]}}},
        {"name": "u", "user": {"exec": {"command": "b", "env": hidden}}},
        *odd,
    ]
    assert plugins[1] == {"command": "b"}


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
