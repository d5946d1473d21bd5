"""Builds etcd, kube-apiserver and kube-controller-manager once per machine, from the pinned Go modules."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from pulumi_sandbox import files
from pulumi_sandbox.documents import read_json
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.locks import exclusive
from pulumi_sandbox.services.progress import Progress, Step, silent
from pulumi_sandbox.services.toolchain import Go, installed, toolchain_for

MODULE = Path(__file__).parents[1] / "control-plane"

PROGRAMS: Mapping[str, str] = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
}
"""The package each program is built from."""

CACHE_VARIABLE: Final = "PULUMI_SANDBOX_CACHE"
"""The variable that names the folder of built programs, over all defaults."""

USUAL_SECONDS = 270.0
"""A cold build with its downloads on two cores, until this machine has measured its own."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that decides which bytes come out of a build."""

    go_mod: str
    go_sum: str
    go: Go

    @property
    def kubernetes(self) -> str:
        """The pinned release of Kubernetes, `v1.36.3`."""
        pinned = re.search(r"k8s\.io/kubernetes (v\d+\.\d+\.\d+)", self.go_mod)
        if pinned is None:
            raise SandboxError(
                code="go-module-broken",
                place=str(MODULE / "go.mod"),
                cause="it does not require k8s.io/kubernetes",
                mend="restore the file: install the package pulumi-sandbox anew",
            )
        return pinned.group(1)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Flags of `go build`. The version is stamped in, or clients that read `/version` fail."""
        stamp = "k8s.io/component-base/version"
        major, minor = self.kubernetes.removeprefix("v").split(".")[:2]
        link = (
            f"-s -w -X {stamp}.gitVersion={self.kubernetes} "
            f"-X {stamp}.gitMajor={major} -X {stamp}.gitMinor={minor}"
        )
        return ("-trimpath", "-buildvcs=false", "-ldflags", link)

    @property
    def key(self) -> str:
        """The name of the folder in the cache: equal inputs, equal programs."""
        inputs = json.dumps([self.go_mod, self.go_sum, self.go.name, *self.arguments])
        return hashlib.sha256(inputs.encode()).hexdigest()[:20]


def cache_folder(owner: str = "pulumi-sandbox") -> Path:
    """Return where built programs are kept: where a variable says, or in the cache of their owner."""
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / owner / "control-plane"


def kept_in(cache: Path) -> Path:
    """Return the folder that the three programs have in `cache`, whether they are there or not."""
    return cache / _recipe().key


def _recipe() -> Recipe:
    go_mod = (MODULE / "go.mod").read_text()
    return Recipe(go_mod, (MODULE / "go.sum").read_text(), toolchain_for(go_mod))


def binaries(progress: Progress = silent, cache: Path | None = None) -> Path:
    """Return the folder with the three programs in `cache`, building them first when no build is kept.

    Builders that come at once wait for the first. A build that fails or is killed leaves nothing that a later
    one would take for finished; programs that are no longer what was built are built again.

    Raises SandboxError `go-missing`, `disk-full`, `modules-unreachable` or `build-failed`.
    """
    cache = cache or cache_folder()
    recipe, kept = _recipe(), kept_in(cache)
    if _is_as_built(kept):
        return kept
    waiting = Step("another process is building the control plane; waiting for it", 0.0, _usual(cache))
    try:
        with exclusive(cache / "lock", on_wait=lambda: progress(waiting)):
            if not _is_as_built(kept):
                shutil.rmtree(kept, ignore_errors=True)
                _build(recipe, cache, kept, progress)
    except OSError as error:
        raise explain(str(error), str(cache)) from error
    return kept


def _is_as_built(kept: Path) -> bool:
    """Whether the programs are there, and are to the byte what was built: once it is so, in each process.

    Nobody knows what stands in a folder without its digests: that is built again.
    """
    if kept.is_dir() and _digests_of(kept).is_file() and _are_the_same(kept):
        return True
    _are_the_same.cache_clear()
    return False


@cache
def _are_the_same(kept: Path) -> bool:
    try:
        return read_json(_digests_of(kept).read_bytes()) == _digests(kept)
    except ValueError:
        return False


def _keep_digests(folder: Path, kept: Path) -> None:
    files.replace(_digests_of(kept), json.dumps(_digests(folder), indent=1, sort_keys=True))


def _digests_of(kept: Path) -> Path:
    return kept.with_name(f"{kept.name}.sha256.json")


def _digests(folder: Path) -> dict[str, str]:
    def digest(program: Path) -> str:
        with program.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    return {program.name: digest(program) for program in sorted(folder.iterdir())}


def explain(last_words: str, place: str) -> SandboxError:
    """Say why a build failed, from the last lines of its log (or the system's error)."""
    if files.names_full_disk(last_words):
        return SandboxError(
            code="disk-full",
            place=place,
            cause="the disk is full; building the control plane needs about 4 GB free, its programs 230 MB",
            mend="free some room, then run the command again",
        )
    if re.search(r"dial tcp|proxyconnect|i/o timeout|TLS handshake|no such host", last_words):
        return SandboxError(
            code="modules-unreachable",
            place=place,
            cause=f"Go could not download the modules of the control plane: {last_words}",
            mend="check the network, or name a module proxy with GOPROXY, then run the command again",
        )
    return SandboxError(
        code="build-failed",
        place=place,
        cause=f"the control plane could not be built: {last_words}",
        mend="read that log; `go clean -cache` and the same command again mend a broken build cache",
    )


def _build(recipe: Recipe, cache: Path, kept: Path, progress: Progress) -> None:
    unfinished = cache / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    go = installed(recipe.go, cache, progress)
    what = f"building etcd and Kubernetes {recipe.kubernetes} from source, once per machine"
    usual = _usual(cache)
    seconds = _run_go(
        [str(go), "build", *recipe.arguments, "-o", f"{unfinished}/", *PROGRAMS.values()],
        cache / f"build-{recipe.key}.log",
        lambda elapsed: progress(Step(what, elapsed, usual)),
    )
    (unfinished / "server").rename(unfinished / "etcd")
    for program in unfinished.iterdir():
        with program.open("rb") as file:
            os.fsync(file.fileno())
    _keep_digests(unfinished, kept)
    unfinished.rename(kept)
    files.replace(cache / "seconds", f"{max(seconds, _slowest(cache) or 0):.0f}")


def _run_go(command: list[str], log: Path, tick: Callable[[float], None]) -> float:
    """Run Go to its end, calling `tick` with the seconds so far each second; give the seconds it took."""
    own = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    began = time.monotonic()
    with (
        log.open("w") as output,
        subprocess.Popen(command, cwd=MODULE, env={**os.environ, **own}, stdout=output, stderr=output) as go,
    ):
        try:
            while (status := _wait_a_second(go)) is None:
                tick(time.monotonic() - began)
        except BaseException:
            go.terminate()
            go.wait()
            raise
    if status != 0:
        raise explain(" / ".join(log.read_text().strip().splitlines()[-3:]), str(log))
    return time.monotonic() - began


def _wait_a_second(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return None


def _usual(cache: Path) -> float:
    return _slowest(cache) or USUAL_SECONDS


def _slowest(cache: Path) -> float | None:
    """Recall this machine's slowest build: a later one with a warm Go cache says nothing of a cold one."""
    try:
        return float((cache / "seconds").read_text())
    except (OSError, ValueError):
        return None
