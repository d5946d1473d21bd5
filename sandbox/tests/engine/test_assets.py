"""Digests of assets; the expected ones were computed by the genuine engine's own Go code."""

from pathlib import Path

import pytest
from pulumi_sandbox.engine.deploy.assets import hashed
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Archive, Asset, Secret

from sandbox.tests.support.engine_stack import Stack
from sandbox.tests.support.scripted_program import Script

_HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
_TEXT = Asset(text="hello")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "data" / "sub").mkdir(parents=True)
    (tmp_path / "data" / "a.txt").write_text("hello")
    (tmp_path / "data" / "sub" / "b.txt").write_text("deep")
    (tmp_path / "packed.zip").write_text("hello")
    return tmp_path


@pytest.mark.parametrize(
    ("value", "digest"),
    [
        pytest.param(_TEXT, _HELLO, id="text"),
        pytest.param(Asset(path="data/a.txt"), _HELLO, id="file"),
        pytest.param(Archive(path="packed.zip"), _HELLO, id="archive file"),
        pytest.param(
            Archive(path="data"),
            "7f5999e639e1d276712302e11e373043c0a3166441ddbd87bcc8f6770a17bc2d",
            id="directory",
        ),
        pytest.param(
            Archive(assets={"z.txt": _TEXT, "dir": Archive(path="data")}),
            "1d4256d1dae5d6361268bcbf81f142c8c3f3bbb71be848998c4c8cfce5579f67",
            id="members",
        ),
        pytest.param(
            Archive(assets={}),
            "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
            id="empty",
        ),
    ],
)
def test_a_digest_is_the_genuine_engines(root: Path, value: Asset | Archive, digest: str):
    found = hashed({"deep": [Secret({"it": value})]}, root)
    deep = found["deep"]
    assert isinstance(deep, list)
    secret = deep[0]
    assert isinstance(secret, Secret)
    inner = secret.value
    assert isinstance(inner, dict)
    it = inner["it"]
    assert isinstance(it, Asset | Archive)
    assert it.hash == digest


def test_a_digest_that_is_there_is_believed(root: Path):
    assert hashed({"a": Asset(path="gone", hash="ab")}, root) == {"a": Asset(path="gone", hash="ab")}


def test_what_an_archive_is_made_of_has_its_digest_as_well(root: Path):
    """As the genuine engine reads them from the wire: the members first, each with its own."""
    directory = Archive(path="data", hash="7f5999e639e1d276712302e11e373043c0a3166441ddbd87bcc8f6770a17bc2d")
    text = Asset(text="hello", hash=_HELLO)
    given = Archive(assets={"z.txt": _TEXT, "dir": Archive(path="data"), "in": Archive(assets={"t": _TEXT})})
    found = hashed({"it": given}, root)["it"]
    assert isinstance(found, Archive)
    assert found.assets is not None
    assert (found.assets["z.txt"], found.assets["dir"]) == (text, directory)
    inner = found.assets["in"]
    assert isinstance(inner, Archive)
    assert inner.assets == {"t": text}
    assert found.hash
    assert hashed({"it": found}, root) == {"it": found}


def test_a_missing_file_is_told_with_its_path(root: Path):
    with pytest.raises(SandboxError) as caught:
        hashed({"a": Asset(path="gone.txt")}, root)
    assert caught.value.code == "asset-unreadable"
    assert caught.value.place == str(root / "gone.txt")


def test_the_assets_of_a_program_are_recorded_with_their_digest(stack: Stack):
    (stack.directory / "a.txt").write_text("hello")
    stack.up(lambda program: program.register("a", {"file": Asset(path="a.txt")}))
    assert stack.resource("a").inputs["file"] == Asset(path="a.txt", hash=_HELLO)


def test_assets_among_outputs_have_their_digest(stack: Stack):
    def program(script: Script) -> None:
        component = script.component("c")
        script.outputs(component.urn, {"all": Archive(assets={"t": _TEXT})})

    assert stack.up(program).code == 0
    found = stack.resource("c").outputs["all"]
    assert isinstance(found, Archive)
    assert (bool(found.hash), found.assets) == (True, {"t": Asset(text="hello", hash=_HELLO)})


@pytest.mark.parametrize("value", [Asset(uri="https://x/y"), Archive(uri="https://x/y.zip")])
def test_an_asset_from_elsewhere_is_refused(root: Path, value: Asset | Archive):
    with pytest.raises(SandboxError) as caught:
        hashed({"a": value}, root)
    assert caught.value.code == "asset-unsupported"


@pytest.mark.parametrize("asset", [Asset(path="/etc/hostname"), Archive(path="/etc"), Asset(text="t")])
def test_no_file_is_read_for_a_program_that_nobody_trusts(asset: Asset | Archive) -> None:
    with pytest.raises(SandboxError, match="shut in"):
        hashed({"asset": asset}, None)
