"""The program itself, run as the language host runs it."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from secret_values import declared_secrets

from tests.support.cases import table
from tests.support.policies import objections, record_dev
from tests.support.recorder import Recorder, Unknown
from tests.support.stacks import ROOT

COUNTS: Any = table(__file__, "COUNTS")
"""Resources of a first preview, when the project of an account that is not claimed yet is unknown."""


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    return record_dev(tmp_path_factory.mktemp("backend"))


def test_the_dev_stack_declares_what_it_always_has(dev: Recorder) -> None:
    counted = {type_: len(dev.of_type(type_)) for type_ in {one.type for one in dev.registrations}}

    assert counted == COUNTS


def test_the_dev_stack_satisfies_the_policies_with_no_secret_in_plain(dev: Recorder) -> None:
    assert any(declared_secrets(dev.config, dev.secret_keys))
    assert objections("dev", dev) == []


def test_the_dev_stack_uses_three_clouds_and_one_licence(dev: Recorder) -> None:
    secrets = dev.of_type("kubernetes:core/v1:Secret").values()
    labels = [one.inputs["metadata"]["labels"] for one in secrets if one.parent.endswith("::account-pool")]

    assert {label["hyperscaler-type"].partition("_")[0] for label in labels} == {"aws", "azure", "gcp"}
    assert [label["tenant-name"] for label in labels if "tenant-name" in label] == ["globex"]


def test_the_stack_exports_how_much_there_is_of_each_part(dev: Recorder) -> None:
    assert dev.stack_outputs == {
        "accountPool": {"namespace": "account-pool", "members": 7},
        "tenants": 5,
        "claims": {"bound": Unknown(), "skipped": Unknown()},
        "asoCredentials": 3,
        "pullSecrets": 3,
        "secretStores": 3,
        "services": 3,
        "skipped": Unknown(),
    }


def test_every_credential_of_the_dev_stack_is_encrypted_by_itself() -> None:
    stack = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text(encoding="utf-8"))

    credentials = stack["config"]["credfleet:credentials"]
    assert {frozenset(entry) for entry in credentials.values()} == {frozenset({"secure"})}


def test_every_key_may_be_left_out_of_a_stack_file_and_is_not_marked_secret_as_a_whole() -> None:
    project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text(encoding="utf-8"))

    assert project["runtime"] == {"name": "python", "options": {"toolchain": "pip", "virtualenv": ".venv"}}
    assert project["config"] == {
        f"credfleet:{key}": {"type": "object", "default": {}}
        for key in (
            "cluster",
            "credentials",
            "tenants",
            "accountPool",
            "asoCredentials",
            "pullSecrets",
            "services",
            "secretStores",
        )
    }


def test_importing_the_program_imports_no_cloud_it_does_not_use_and_nothing_of_the_sandbox() -> None:
    asked = "import components.fleet, components.config, sys; print(*sys.modules)"

    answer = subprocess.run(
        [sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True
    )

    imported = {*answer.stdout.split()}
    assert {"components.fleet", "pulumi_kubernetes"} <= imported
    assert not imported & {"pulumi_azure_native", "pulumi_gcp", "kubernetes.client", "sandbox"}


def test_the_program_has_no_logic_of_its_own() -> None:
    source = (ROOT / "__main__.py").read_text(encoding="utf-8")

    statements = ast.parse(source).body
    assert len(source.splitlines()) < 40
    assert {type(one) for one in statements} <= {ast.Import, ast.ImportFrom, ast.Expr, ast.Assign}


def modules(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


@pytest.mark.parametrize("path", modules(ROOT / "components"), ids=lambda path: str(path.relative_to(ROOT)))
def test_secret_configuration_is_read_in_one_place_only(path: Path) -> None:
    """`Config.require` and `get` hand out secrets as plain text (they know no other), even under mocks."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    reads = [
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr.startswith(("require", "get_secret", "get_object"))
    ]

    assert reads == []
