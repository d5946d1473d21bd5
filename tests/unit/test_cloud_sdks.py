"""The SDKs of clouds are extras: what needs none of them works without, and what needs one says which.

That a project does without both from its wheel to its claimed account is tried by the script `try-package`.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from components.errors import ConfigurationError, Problem
from components.stack_config import cloud_keys
from components.stack_config.stack import Settings
from operations.config.settings import check, settings_of
from tests.support.aso import CLIENT, SUB, TENANT
from tests.support.stacks import ROOT, SECRET_KEYS, problems, stack

SDKS = ("pulumi_azure_native", "pulumi_gcp")

WITHOUT = """
import sys
for sdk in sys.argv[1:]:
    sys.modules[sdk] = None
import credfleet, operations.main
from operations.review.dynamic_host import known_types

for name in credfleet._MODULE_OF:
    getattr(credfleet, name)

known = {f"{each.__module__}:{each.__name__}" for each in known_types().values()}
lacking = {*open("tests/dynamic/frozen_paths.txt").read().split()} - known
assert not lacking, lacking
"""


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    for sdk in SDKS:
        monkeypatch.setitem(sys.modules, sdk, None)


def test_commands_and_public_components_are_there_without_any_cloud() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT, *SDKS], cwd=ROOT, check=True)


@pytest.mark.usefixtures("without")
def test_a_stack_that_asks_for_no_cloud_needs_no_sdk() -> None:
    principal = {"subscriptionId": SUB, "tenantId": TENANT, "clientId": CLIENT, "secretFrom": "sp"}
    aso = {"namespaces": {"tenant-acme": {"servicePrincipal": principal}}}
    assert problems(stack(credentials__sp="made up", asoCredentials=aso)) == ()


IN_A_CLOUD = pytest.mark.parametrize(
    ("section", "package", "extra"),
    [
        ({"pullSecrets": {"clusters": {}}}, "pulumi-gcp>=10,<11", "gcp"),
        (
            {"asoCredentials": {"resourceGroups": {"rg-1": {"location": "westeurope"}}}},
            "pulumi-azure-native>=3.20,<4",
            "azure",
        ),
    ],
    ids=["pull secrets", "resource groups"],
)


def lacking(section: dict[str, Any]) -> list[Problem]:
    settings = Settings.parse(stack(**section), SECRET_KEYS, ROOT)
    try:
        settings.refuse_what_cannot_run()
    except ConfigurationError as error:
        return [*error.problems]
    return []


@pytest.mark.usefixtures("without")
@IN_A_CLOUD
def test_what_is_declared_in_a_cloud_names_the_package_it_lacks(
    section: dict[str, Any], package: str, extra: str
) -> None:
    (room,) = section
    assert lacking(section) == [
        Problem(
            f"credfleet:{room}",
            f"it needs the package {package}, which is not installed here",
            f"pip install '{package}'  # and put [{extra}] behind credfleet in requirements.txt",
        ),
    ]


@IN_A_CLOUD
def test_a_package_of_another_version_is_as_one_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, section: dict[str, Any], package: str, extra: str
) -> None:
    assert lacking(section) == []
    monkeypatch.setattr(cloud_keys, "version", {package.partition(">=")[0]: "9.0.0"}.__getitem__)
    (told,) = lacking(section)
    assert told.problem == f"it needs the package {package}, and 9.0.0 is installed here"


@pytest.mark.usefixtures("without")
def test_who_runs_no_program_is_not_asked_for_what_one_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(
        "config:\n  credfleet:cluster: {context: c}\n  credfleet:pullSecrets: {clusters: {}}\n"
    )
    monkeypatch.chdir(tmp_path)
    assert settings_of("dev").pull_secrets is not None
    with pytest.raises(ConfigurationError, match="pulumi-gcp"):
        check("dev")
