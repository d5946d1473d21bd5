"""The SDKs of clouds are extras: what needs none of them works without, and what needs one says which.

That a project does without both from its wheel to its claimed account is tried by `make try-package`.
"""

import subprocess
import sys
from typing import Any

import pytest

from components.errors import Problem
from tests.support.aso import CLIENT, SUB, TENANT
from tests.support.stacks import ROOT, problems, stack

SDKS = ("pulumi_azure_native", "pulumi_gcp")

WITHOUT = """
import sys
for sdk in sys.argv[1:]:
    sys.modules[sdk] = None
import pulumi
import credfleet, operations.main
from credfleet.remote.provider import Components
from tests.components.test_remote_components import SCHEMA

components = Components()
for name in credfleet._MODULE_OF:
    getattr(credfleet, name)
asked = [*SCHEMA["resources"], "credfleet:index:Nothing"]
for token in asked:
    try:
        components.construct("one", token, {}, None)
    except pulumi.RunError as error:
        if "is not installed" in str(error) or "no component" in str(error):
            print(str(error).replace("\\n", " ").partition("; in req")[0].partition(" → one of")[0])
    except Exception:
        pass
"""


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    for sdk in SDKS:
        monkeypatch.setitem(sys.modules, sdk, None)


def test_all_but_two_components_are_there_without_any_cloud_and_those_say_what_they_lack() -> None:
    told = subprocess.run(
        [sys.executable, "-c", WITHOUT, *SDKS], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert told.stdout.splitlines() == [
        "credfleet:index:AsoWorkloadIdentity: it needs the package pulumi-azure-native, which is not"
        " installed here → pip install pulumi-azure-native==3.29.0",
        "credfleet:index:PullSecret: it needs the package pulumi-gcp, which is not installed here"
        " → pip install pulumi-gcp==10.2.0",
        "credfleet:index:Nothing: no component",
    ]


@pytest.mark.usefixtures("without")
def test_a_stack_that_asks_for_no_cloud_needs_no_sdk() -> None:
    principal = {"subscriptionId": SUB, "tenantId": TENANT, "clientId": CLIENT, "secretFrom": "sp"}
    aso = {"namespaces": {"tenant-acme": {"servicePrincipal": principal}}}
    assert problems(stack(credentials__sp="made up", asoCredentials=aso)) == ()


@pytest.mark.usefixtures("without")
@pytest.mark.parametrize(
    ("section", "package", "extra"),
    [
        ({"pullSecrets": {"clusters": {}}}, "pulumi-gcp==10.2.0", "gcp"),
        (
            {"asoCredentials": {"resourceGroups": {"rg-1": {"location": "westeurope"}}}},
            "pulumi-azure-native==3.29.0",
            "azure",
        ),
    ],
    ids=["pull secrets", "resource groups"],
)
def test_what_is_declared_in_a_cloud_names_the_package_it_lacks(
    section: dict[str, Any], package: str, extra: str
) -> None:
    (room,) = section
    name = package.partition("==")[0]
    assert problems(stack(**section)) == (
        Problem(
            f"credfleet:{room}",
            f"it needs the package {name}, which is not installed here",
            f"pip install {package}; in requirements.txt: credfleet[{extra}]",
        ),
    )
