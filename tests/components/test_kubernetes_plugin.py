"""The Kubernetes provider that the engine would take is refused where it lacks an option.

Stand-ins tell their options as a plugin does; `make genuine` asks the genuine one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pulumi
import pytest

from components import kubernetes_plugin
from components.kubernetes_plugin import ACCEPTED, RELIED_ON, lacking_options, refuse_older_plugin
from components.providers import kubernetes_provider
from components.stack_config.models import Cluster
from tests.support import plugin_stand_in
from tests.support.recorder import record

OLDER = [each for each in RELIED_ON if each != "upsertExistingObjects"]


@pytest.fixture(autouse=True)
def asked_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[None]:
    for variable in ("PULUMI_DEBUG_PROVIDERS", "PULUMI_IGNORE_AMBIENT_PLUGINS", ACCEPTED):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    lacking_options.cache_clear()
    yield
    lacking_options.cache_clear()


def on_path(folder: Path, options: list[str]) -> None:
    file = folder / "pulumi-resource-kubernetes"
    text = Path(plugin_stand_in.__file__).read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable}")
    file.write_text(text)
    file.chmod(0o755)
    (folder / "options").write_text(" ".join(options))


@pytest.mark.parametrize("missing", RELIED_ON)
def test_plugin_on_path_without_an_option_is_refused(missing: str, tmp_path: Path) -> None:
    on_path(tmp_path, [each for each in RELIED_ON if each != missing])
    with pytest.raises(pulumi.RunError) as refused:
        refuse_older_plugin()
    problem, fix = str(refused.value).splitlines()
    assert problem.startswith(
        f"Kubernetes provider {tmp_path}/pulumi-resource-kubernetes: it does not know {missing}"
    )
    assert "`pulumi plugin install resource kubernetes v4." in fix
    assert f"set {ACCEPTED}={missing}" in fix


def nothing(_: Path, __: pytest.MonkeyPatch) -> None:
    """No plugin but those that the engine fetches itself."""


def sound(folder: Path, _: pytest.MonkeyPatch) -> None:
    on_path(folder, list(RELIED_ON))


def ignored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path(folder, OLDER)
    monkeypatch.setenv("PULUMI_IGNORE_AMBIENT_PLUGINS", "true")


def silent(_: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_DEBUG_PROVIDERS", "kubernetes:1")


@pytest.mark.parametrize("given", [nothing, sound, ignored, silent])
def test_plugin_that_lacks_nothing_or_is_not_taken_passes(
    given: Callable[[Path, pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(tmp_path, monkeypatch)
    refuse_older_plugin()


@pytest.mark.parametrize("accepted", ["enableSecretMutable", "true"])
def test_plugin_that_lacks_another_option_than_is_accepted_is_refused(
    accepted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path(tmp_path, OLDER)
    monkeypatch.setenv(ACCEPTED, accepted)
    with pytest.raises(pulumi.RunError):
        refuse_older_plugin()


def test_plugin_that_is_accepted_is_told_in_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path(tmp_path, OLDER)
    monkeypatch.setenv(ACCEPTED, "upsertExistingObjects")
    warned: list[str] = []
    monkeypatch.setattr(kubernetes_plugin.pulumi.log, "warn", warned.append)
    refuse_older_plugin()
    (text,) = warned
    assert "it takes over existing objects" in text


def test_provider_is_not_declared_with_a_plugin_that_is_refused(tmp_path: Path) -> None:
    on_path(tmp_path, OLDER)

    def program() -> None:
        kubernetes_provider(Cluster(context="fleet"), pulumi.ResourceOptions())

    with pytest.raises(pulumi.RunError, match="does not know upsertExistingObjects"):
        record(program)
