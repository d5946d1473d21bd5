"""Opening a stack."""

import subprocess
import sys
from pathlib import Path

import pytest
from pulumi_sandbox.engine.model.resource import Snapshot
from pulumi_sandbox.engine.state.store import state_path
from pulumi_sandbox.engine.workspace import StackAtRest, Workspace, find_backend, find_passphrase
from pulumi_sandbox.errors import SandboxError

from sandbox.tests.support.engine_stack import Stack
from sandbox.tests.support.scripted_program import nothing


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    return tmp_path


def _open(project: Path, stack: str, passphrase: str = "p") -> Workspace:
    return Workspace.open(project, stack, backend_dir=project / "state", passphrase=passphrase)


def test_a_new_stack_gets_a_salt_that_only_its_passphrase_fits(project: Path):
    (project / "Pulumi.dev.yaml").write_text("# mine\nconfig: {a: b}\n")
    workspace = _open(project, "dev")
    workspace.keep_salt()
    assert workspace.config().values == {"shop:a": "b"}
    assert (project / "Pulumi.dev.yaml").read_text().startswith("# mine\n")
    assert _open(project, "dev").crypter.salt == workspace.crypter.salt
    with pytest.raises(SandboxError) as caught:
        _open(project, "dev", "other")
    assert caught.value.code == "wrong-passphrase"


def test_opening_a_stack_without_a_salt_writes_nothing(project: Path):
    (project / "Pulumi.dev.yaml").write_text("config: {a: b}\n")
    assert _open(project, "dev").config().values == {"shop:a": "b"}
    assert (project / "Pulumi.dev.yaml").read_text() == "config: {a: b}\n"


def test_only_what_writes_the_state_writes_a_salt(stack: Stack):
    file = stack.directory / "Pulumi.dev.yaml"
    file.write_text("config: {}\n")
    assert stack.preview(nothing).code == 0
    assert file.read_text() == "config: {}\n"
    assert stack.up(nothing).code == 0
    assert stack.workspace().stack_file.salt == stack.crypter.salt


@pytest.mark.parametrize("linked", ["Pulumi.yaml", "Pulumi.dev.yaml", "stackConfigDir"])
def test_files_that_nobody_trusts_lead_nowhere_else(
    project: Path, tmp_path_factory: pytest.TempPathFactory, linked: str
):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (project / "Pulumi.dev.yaml").write_text("config: {}\n")
    assert StackAtRest.find(project, "dev", backend_dir=project, shut_in=True).stack_file.is_empty
    for name in ("Pulumi.yaml", "Pulumi.dev.yaml"):
        (elsewhere / name).write_text((project / name).read_text())
    if linked == "stackConfigDir":
        with (project / "Pulumi.yaml").open("a") as file:
            file.write(f"stackConfigDir: {elsewhere}\n")
    else:
        (project / linked).unlink()
        (project / linked).symlink_to(elsewhere / linked)
    with pytest.raises(SandboxError) as caught:
        StackAtRest.find(project, "dev", backend_dir=project, shut_in=True)
    assert caught.value.code == "file-elsewhere"


def test_a_misspelt_stack_is_refused_and_leaves_no_file(project: Path):
    with pytest.raises(SandboxError) as caught:
        _open(project, "prd")
    assert caught.value.code == "stack-unknown"
    assert sorted(path.name for path in project.iterdir()) == ["Pulumi.yaml"]


@pytest.mark.parametrize("name", ["a b", "ü", "a::b", "..", "x/dev", "n" * 101, ""])
def test_a_stack_whose_name_the_genuine_cli_would_not_take_is_refused(project: Path, name: str):
    with pytest.raises(SandboxError) as caught:
        _open(project, name)
    assert caught.value.code == "stack-name-invalid"


def test_a_stack_that_only_has_a_state_is_known(project: Path):
    path = state_path(project / "state", "shop", "old")
    path.parent.mkdir(parents=True)
    path.write_text('{"version":0,"checkpoint":{"stack":"organization/shop/old"}}')
    assert _open(project, "old").store.load() == Snapshot()


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        pytest.param({"PULUMI_CONFIG_PASSPHRASE": "env"}, "env", id="the variable first"),
        pytest.param({"PULUMI_CONFIG_PASSPHRASE": ""}, "", id="an empty one is one"),
        pytest.param({"PULUMI_CONFIG_PASSPHRASE_FILE": "{0}/named"}, "named", id="then the file"),
        pytest.param({}, "public", id="then the public one"),
    ],
)
def test_the_passphrase_is_found(tmp_path: Path, environment: dict[str, str], found: str):
    for name in ("named", "public"):
        (tmp_path / name).write_text(f"{name}\n")
    filled = {name: value.format(tmp_path) for name, value in environment.items()}
    assert find_passphrase("dev", tmp_path / "public", filled) == found


@pytest.mark.parametrize(
    ("environment", "public"),
    [
        pytest.param({}, None, id="no file named"),
        pytest.param({}, "not-there", id="no public file"),
        pytest.param({"PULUMI_CONFIG_PASSPHRASE_FILE": "/nowhere/at/all"}, "public", id="file not there"),
    ],
)
def test_no_passphrase_is_an_error_that_says_how_to_give_one(
    tmp_path: Path, environment: dict[str, str], public: str | None
):
    (tmp_path / "public").write_text("public\n")
    with pytest.raises(SandboxError, match="set PULUMI_CONFIG_PASSPHRASE") as caught:
        find_passphrase("dev", tmp_path / public if public else None, environment)
    assert caught.value.code == "passphrase-missing"


@pytest.mark.parametrize(
    ("url", "directory"),
    [
        (None, Path("/default")),
        ("file:///srv/state", Path("/srv/state")),
        ("file:///srv/state?no_tmp_dir=true", Path("/srv/state")),
        ("file://~", Path.home()),
        ("file://~/state", Path.home() / "state"),
        ("file://./here", Path.cwd() / "here"),
    ],
)
def test_the_backend_is_where_the_genuine_cli_would_look(url: str | None, directory: Path):
    environment = {"PULUMI_BACKEND_URL": url} if url else {}
    assert find_backend(Path("/default"), environment) == directory


@pytest.mark.parametrize("url", ["s3://bucket", "https://api.pulumi.com", "nonsense"])
def test_a_backend_that_is_no_directory_is_refused(url: str):
    with pytest.raises(SandboxError) as caught:
        find_backend(Path("/default"), {"PULUMI_BACKEND_URL": url})
    assert caught.value.code == "backend-unsupported"


@pytest.mark.parametrize(
    "package", ["ruamel.yaml", "cryptography", "rich", "grpc", "pulumi", "google.protobuf"]
)
def test_opening_and_showing_import_nothing_heavy_before_it_is_used(package: str):
    modules = "pulumi_sandbox.engine.workspace, pulumi_sandbox.engine.show.display"
    program = f"import sys, {modules}; sys.exit({package!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
