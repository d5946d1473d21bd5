"""Builds the API server's programs and the Pulumi CLI once per machine, from pinned Go modules."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pulumi_sandbox import files
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.locks import exclusive
from pulumi_sandbox.services.progress import Progress, Step, silent
from pulumi_sandbox.services.toolchain import Go, installed, toolchain_for

_MODULES: Final = Path(__file__).parents[1]

CACHE_VARIABLE: Final = "PULUMI_SANDBOX_CACHE"
"""Variable with the folder of built programs; overrides all defaults."""


@dataclass(frozen=True, slots=True, eq=False)
class GoModule:
    """One of our Go modules, in a folder, which pins programs of others.

    what: a description of the programs. pinned: their module, whose version they have. programs: name →
    package. stamp: returns the linker variables for that version. beside: files of the pinned module to copy
    beside the programs. own: our files to copy there: name → file.
    """

    folder: Path
    what: str
    pinned: str
    programs: Mapping[str, str]
    stamp: Callable[[str], Mapping[str, str]]
    flags: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    own: Mapping[str, Path] = field(default_factory=dict[str, Path])
    usual_seconds: float = 270.0
    """Duration of a build with downloads and without a cache, on two cores."""


def _kubernetes_stamp(version: str) -> Mapping[str, str]:
    """Return the version variables; clients that read `/version` fail without them."""
    major, minor = version.removeprefix("v").split(".")[:2]
    base = "k8s.io/component-base/version"
    return {f"{base}.gitVersion": version, f"{base}.gitMajor": major, f"{base}.gitMinor": minor}


CONTROL_PLANE: Final = GoModule(
    _MODULES / "control-plane",
    "etcd and Kubernetes",
    "k8s.io/kubernetes",
    {
        "etcd": "go.etcd.io/etcd/server/v3",
        "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    },
    _kubernetes_stamp,
)
_SDK: Final = "github.com/pulumi/pulumi/sdk/v3"
PULUMI_CLI: Final = GoModule(
    _MODULES / "pulumi-cli",
    "the Pulumi CLI",
    _SDK,
    {"pulumi": "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"},
    lambda version: {f"{_SDK}/go/common/version.Version": version},
    ("-tags", "osusergo,grpcnotrace"),
    ("python/cmd/pulumi-language-python-exec", "python/dist/pulumi-resource-pulumi-python"),
    {"pulumi-language-python": _MODULES / "language_host.py"},
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """All inputs that determine the bytes of a build."""

    module: GoModule
    go_mod: str
    go_sum: str
    go: Go

    @property
    def version(self) -> str:
        """The pinned release, `v1.36.3`."""
        return str(re.findall(rf"{re.escape(self.module.pinned)} (v\d+\.\d+\.\d+\S*)", self.go_mod)[0])

    @property
    def arguments(self) -> tuple[str, ...]:
        """The flags of `go build`."""
        stamped = (f"-X {key}={text}" for key, text in self.module.stamp(self.version).items())
        return ("-trimpath", "-buildvcs=false", *self.module.flags, "-ldflags", " ".join(("-s -w", *stamped)))

    @property
    def key(self) -> str:
        """The name of the folder in the cache, derived from all inputs."""
        own = [file.read_text(encoding="utf-8") for file in self.module.own.values()]
        inputs = [self.go_mod, self.go_sum, self.go.name, *self.arguments, *own]
        return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:20]


def cache_folder(owner: str = "pulumi-sandbox") -> Path:
    """Return the folder for builds: that of the variable, or the cache of their owner."""
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / owner / "control-plane"


def kept_in(cache: Path, module: GoModule = CONTROL_PLANE) -> Path:
    """Return the folder for a module's programs in `cache`, whether it exists or not."""
    return cache / _recipe(module).key


def _recipe(module: GoModule) -> Recipe:
    go_mod = (module.folder / "go.mod").read_text()
    return Recipe(module, go_mod, (module.folder / "go.sum").read_text(), toolchain_for(go_mod))


def binaries(
    progress: Progress = silent, cache: Path | None = None, module: GoModule = CONTROL_PLANE
) -> Path:
    """Return the folder with a module's programs in `cache`, which are built first if missing.

    Concurrent builders wait for the first. A failed or killed build leaves nothing that a later one would
    mistake for a finished build. Raises SandboxError `go-missing`, `disk-full`, `modules-unreachable` or
    `build-failed`.
    """
    cache = cache or cache_folder().with_name(module.folder.name)
    recipe, kept = _recipe(module), kept_in(cache, module)
    if kept.is_dir():
        return kept
    waiting = Step(f"another process is building {module.what}; waiting for it", 0.0, module.usual_seconds)
    try:
        with exclusive(cache / "lock", on_wait=lambda: progress(waiting)):
            if not kept.is_dir():
                _build(recipe, cache, kept, progress)
    except OSError as error:
        raise explain(str(error), str(cache), module) from error
    return kept


def build_together(caches: Mapping[GoModule, Path], progress: Progress = silent) -> None:
    """Build the missing programs of several modules concurrently.

    One can download or link while the other compiles. caches: module → the folder of its builds. Raises as
    `binaries`, for the first that fails; Ctrl-C ends all.
    """
    missing = [module for module, cache in caches.items() if not kept_in(cache, module).is_dir()]
    ended = threading.Event()

    def heed(_: Step) -> None:
        if ended.is_set():
            raise _EndedError

    with ThreadPoolExecutor(max(len(missing), 1)) as threads:
        builds = {module: threads.submit(binaries, heed, caches[module], module) for module in missing}
        began, usual = time.monotonic(), sum(module.usual_seconds for module in missing)
        what = f"building {' and '.join(module.what for module in missing)} from source, once per machine"
        try:
            while builds and wait(builds.values(), timeout=1, return_when=FIRST_EXCEPTION).not_done:
                progress(Step(what, time.monotonic() - began, usual))
                if any(build.done() and build.exception() for build in builds.values()):
                    break
        finally:
            ended.set()
    failed = [error for build in builds.values() if (error := build.exception())]
    for error in sorted(failed, key=lambda error: isinstance(error, _EndedError)):
        raise error


class _EndedError(Exception):
    """Another build has failed, or Ctrl-C was pressed."""


def explain(last_words: str, place: str, module: GoModule = CONTROL_PLANE) -> SandboxError:
    """Return the error for a failed build, from the last lines of its log (or the system's error)."""
    code, problem = "build-failed", f"{module.what} could not be built: {last_words}"
    fix = "read that log; `go clean -cache` and the same command again fix a broken build cache"
    if files.names_full_disk(last_words):
        code, problem = "disk-full", f"the disk is full; building {module.what} needs about 4 GB free"
        fix = "free some room, then run the command again"
    elif re.search(r"dial tcp|proxyconnect|i/o timeout|TLS handshake|no such host", last_words):
        code = "modules-unreachable"
        problem = f"Go could not download the modules of {module.what}: {last_words}"
        fix = "check the network, or name a module proxy with GOPROXY, then run the command again"
    return SandboxError(code=code, place=place, problem=problem, fix=fix)


def _build(recipe: Recipe, cache: Path, kept: Path, progress: Progress) -> None:
    module, unfinished = recipe.module, cache / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    go = str(installed(recipe.go, cache, progress))
    what = f"building {module.what} {recipe.version} from source, once per machine"
    log = cache / f"build-{recipe.key}.log"
    build = [go, "build", *recipe.arguments, "-o", f"{unfinished}/", *module.programs.values()]
    _run_go(build, module, log, lambda elapsed: progress(Step(what, elapsed, module.usual_seconds)))
    for name, package in module.programs.items():
        (unfinished / _built_name(module, package)).rename(unfinished / name)
    for path in module.beside:
        _put(unfinished / Path(path).name, (_folder_of(go, module) / path).read_bytes())
    for name, file in module.own.items():
        _put(unfinished / name, b"#!/usr/bin/env python3\n" + file.read_bytes())
    for program in unfinished.iterdir():
        with program.open("rb") as file:
            os.fsync(file.fileno())
    unfinished.rename(kept)


def _built_name(module: GoModule, package: str) -> str:
    """Return Go's name of a program: the last folder of its package that is not a major version."""
    path = module.folder if package == "." else Path(package)
    return path.parent.name if re.fullmatch(r"v\d+", path.name) else path.name


def _put(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    file.chmod(0o755)


def _folder_of(go: str, module: GoModule) -> Path:
    """Return the folder of the pinned module in Go's cache."""
    listed = [go, "list", "-m", "-f", "{{.Dir}}", module.pinned]
    done = subprocess.run(listed, cwd=module.folder, env=_go_environment(), capture_output=True, check=True)
    return Path(done.stdout.decode().strip())


def _go_environment() -> dict[str, str]:
    own = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    return {**os.environ, **own}


def _run_go(command: list[str], module: GoModule, log: Path, tick: Callable[[float], None]) -> None:
    """Run Go to its end, calling `tick` every second with the elapsed seconds."""
    began = time.monotonic()
    with (
        log.open("w") as output,
        subprocess.Popen(
            command, cwd=module.folder, env=_go_environment(), stdout=output, stderr=output
        ) as go,
    ):
        try:
            while go.returncode is None:
                try:
                    go.wait(timeout=1)
                except subprocess.TimeoutExpired:
                    tick(time.monotonic() - began)
        except BaseException:
            go.terminate()
            go.wait()
            raise
    if go.returncode != 0:
        raise explain(" / ".join(log.read_text().strip().splitlines()[-3:]), str(log), module)
