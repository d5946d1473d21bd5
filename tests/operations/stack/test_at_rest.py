"""A stack whose program does not run: which files are read, and which passphrase opens it."""

import gzip
import json
from pathlib import Path

import pytest

from components.errors import CredfleetError
from operations.stack.at_rest import StackAtRest, find_backend
from operations.stack.passphrase import PassphraseCrypter, find_passphrase


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {}\n")
    return tmp_path


def code_of(project: Path, stack: str, *, shut_in: bool = False) -> str:
    with pytest.raises(CredfleetError) as refused:
        StackAtRest.find(project, stack, backend_dir=project, shut_in=shut_in)
    return refused.value.code


def test_a_stack_without_file_and_state_is_unknown_and_one_with_either_is_not(project: Path) -> None:
    assert StackAtRest.find(project, "dev", backend_dir=project).deployment() == {}
    assert code_of(project, "prod") == "stack-unknown"
    assert code_of(project, "../dev") == "stack-name-invalid"
    packed = project / ".pulumi" / "stacks" / "shop" / "prod.json.gz"
    packed.parent.mkdir(parents=True)
    packed.write_bytes(gzip.compress(json.dumps({"deployment": {"resources": [1]}}).encode()))
    assert StackAtRest.find(project, "prod", backend_dir=project).deployment() == {"resources": [1]}


@pytest.mark.parametrize("name", ["Pulumi.yaml", "Pulumi.dev.yaml"])
def test_a_link_that_leads_out_of_a_project_that_nobody_trusts_is_not_read(
    project: Path, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / name
    (project / name).rename(elsewhere)
    (project / name).symlink_to(elsewhere)
    StackAtRest.find(project, "dev", backend_dir=project)
    assert code_of(project, "dev", shut_in=True) == "file-elsewhere"


def test_a_state_that_is_damaged_is_told_with_its_file_and_its_backup(project: Path) -> None:
    at_rest = StackAtRest.find(project, "dev", backend_dir=project)
    at_rest.state_file.parent.mkdir(parents=True)
    at_rest.state_file.write_text("{")
    with pytest.raises(CredfleetError, match=r"dev\.json\.bak") as refused:
        at_rest.deployment()
    assert (refused.value.code, refused.value.place) == ("state-unreadable", str(at_rest.state_file))


def test_the_passphrase_is_the_one_named_first_and_none_is_refused(tmp_path: Path) -> None:
    named, public = tmp_path / "named", tmp_path / "public"
    named.write_text("of the file\n")
    public.write_text("of anybody\n")
    both = {"PULUMI_CONFIG_PASSPHRASE": "given", "PULUMI_CONFIG_PASSPHRASE_FILE": str(named)}
    assert find_passphrase("dev", public, both) == "given"
    assert find_passphrase("dev", public, {"PULUMI_CONFIG_PASSPHRASE_FILE": str(named)}) == "of the file"
    assert find_passphrase("dev", public, {}) == "of anybody"
    named.write_bytes(b"\xff")
    for file in ("", str(tmp_path / "gone"), str(named)):
        with pytest.raises(CredfleetError) as refused:
            find_passphrase("dev", None, {"PULUMI_CONFIG_PASSPHRASE_FILE": file})
        assert refused.value.code == "passphrase-missing"


@pytest.mark.parametrize("given", ["PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE", ""])
def test_passphrase_that_does_not_fit_is_told_by_what_gives_it(
    project: Path, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (public := project / "public").write_text("wrong\n")
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE", raising=False)
    monkeypatch.setenv(given or "PULUMI_CONFIG_PASSPHRASE_FILE", str(public) if given else "")
    salt = PassphraseCrypter.new("right").salt
    (project / "Pulumi.dev.yaml").write_text(f"encryptionsalt: {salt}\nconfig: {{}}\n")
    with pytest.raises(CredfleetError, match="does not fit") as refused:
        StackAtRest.find(project, "dev", backend_dir=project).unlock(public=public)
    assert refused.value.place == (given or str(public))


def test_backend_that_is_no_folder_has_no_state_here_and_its_stack_file_is_read(project: Path) -> None:
    assert find_backend(Path("/own"), {}) == Path("/own")
    assert find_backend(Path("/own"), {"PULUMI_BACKEND_URL": "file:///else"}) == Path("/else")
    for url in ("s3://bucket?region=eu", "gs://bucket", "azblob://container", "https://api.pulumi.com"):
        assert find_backend(Path("/own"), {"PULUMI_BACKEND_URL": url}) is None
    at_rest = StackAtRest.find(project, "dev", backend_dir=None)
    assert at_rest.stack_file.config == {}
    with pytest.raises(CredfleetError) as refused:
        at_rest.deployment()
    assert refused.value.code == "backend-unsupported"
    assert "unset PULUMI_BACKEND_URL" in refused.value.fix
