"""Documents that people write, damaged by a machine: each is read or refused in words.

Every command runs in process on a small stack of its own. Whatever the input, there is no traceback, nothing
that a terminal would obey, no file that is new or another, and an end within a limit of processor time, which
a slow machine does not change. What a refusal says of each mistake is in the tests of the readers.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pulumi_sandbox.errors import SandboxError
from typer.testing import CliRunner

from components.connection import ClusterTarget, _opened  # pyright: ignore[reportPrivateUsage] - `connect` keeps the first
from components.errors import CredfleetError
from operations.main import app
from operations.sandbox.hyperfleet.app import Store
from operations.stack import passphrase
from tests.support.proving import counted, tried
from tests.support.stacks import ROOT

SECONDS: Final = 20.0
"""Of the processor, for one input: a thousand times what a sound one takes."""

EXAMPLES: Final = ROOT / "docs" / "examples"
_TEXTS: Final = (
    *"\x00\x07\x7f\x85\ufeff\u2028\ud800\t\"'{}[]:,#&*!|>%@`-\n",
    "\x1b[31m\x1b]0;title\x07",
    "&a [*a, *a]",
    "*nobody",
    "!!int abc",
    "!!binary '%%%'",
    "!!python/object:os.system x",
    "<<: {a: b}",
    "2001-13-45",
    "1" * 5_000,
    "1e999",
    ".nan",
    "null",
    "~",
    "true",
    "-1",
    "0o9",
    '"\\ud800"',
    '"\\UFFFFFFFF"',
    "[" * 600,
    "{a: " * 600,
    "{" * 3_000,
    "- " * 1_500,
    "---\n",
    "...\n",
    "? x\n: y\n",
    "é" * 300,
    "../../../etc/passwd",
    "$(id)",
    "<script>",
)
_BYTES: Final = (b"\xff\xfe", b"\xc3\x28", b"\x80", b"\xed\xa0\x80")
ODD: Final = (*_BYTES, *(text.encode("utf-8", "surrogatepass") for text in _TEXTS))

BOMB: Final = b"a: &a [x, x, x, x, x, x, x, x, x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (each, each, b", ".join([b"*%c" % (each - 1)] * 9)) for each in b"bcdefghi"
)

Edit = tuple[str, int, int, int]


@dataclass(frozen=True)
class Reader:
    """Whoever reads a file: what is in it before it is damaged, where it lies, and how it is read.

    read: returns what was said, raises what was not foreseen. usual: damages in a usual run.
    """

    usual: int
    name: str
    sample: Path | str
    file: str
    read: Callable[[], str]

    def whole(self) -> bytes:
        return self.sample.encode() if isinstance(self.sample, str) else self.sample.read_bytes()


def command(*arguments: str) -> Callable[[], str]:
    def run() -> str:
        result = CliRunner().invoke(app, arguments)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.output

    return run


def told(read: Callable[[], object]) -> Callable[[], str]:
    def run() -> str:
        try:
            read()
        except (CredfleetError, SandboxError) as refused:
            return "; ".join([refused.place, refused.problem, refused.fix or "a defect: no fix"])
        return ""

    return run


KUBECONFIG: Final = """\
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: me, namespace: n}}]
clusters: [{name: here, cluster: {server: "https://127.0.0.1:1", certificate-authority-data: QUJD}}]
users: [{name: me, user: {token: abc}}]
"""
CLUSTERS: Final = (
    '{"clusters": {"one": {"name": "one", "generation": 1, "created_time": "2026-01-01T00:00:00Z", '
    '"updated_time": "2026-01-01T00:00:00Z"}}, "reports": {"one": {}}}'
)
CHECK: Final = command("config", "check", "--stack", "dev")
READERS: Final = (
    Reader(30, "stack file", ROOT / "Pulumi.dev.yaml", "Pulumi.dev.yaml", CHECK),
    Reader(30, "members", ROOT / "stacks/dev/members.csv", "stacks/dev/members.csv", CHECK),
    Reader(50, "project", ROOT / "Pulumi.yaml", "Pulumi.yaml", CHECK),
    Reader(50, "manifests", EXAMPLES / "aso/2-team-a.yaml", "it.yaml", command("aso", "explain", "it.yaml")),
    Reader(
        50,
        "stores",
        EXAMPLES / "stores/stores.yaml",
        "it.yaml",
        command("stores", "explain", "it.yaml", "--caller", "tenant-acme"),
    ),
    Reader(40, "preview", EXAMPLES / "preview/dev.json", "it.json", command("preview-report", "it.json")),
    Reader(130, "HyperFleet's file", CLUSTERS, "it.json", told(lambda: Store(Path("it.json")))),
    Reader(
        120, "kubeconfig", KUBECONFIG, "it.yaml", told(lambda: _opened(ClusterTarget(kubeconfig="it.yaml")))
    ),
)
_edits = st.lists(
    st.tuples(
        st.sampled_from(("insert", "replace", "value", "drop", "repeat", "cut", "swap")),
        st.integers(0, 9_999),
        st.integers(1, 60),
        st.integers(0, len(ODD) - 1),
    ),
    min_size=1,
    max_size=3,
)


def damaged(text: bytes, edits: list[Edit]) -> bytes:
    """Return a document after some edits; places are in ten thousandths of it."""
    for kind, place, length, odd in edits:
        at = len(text) * place // 10_000
        end = min(len(text), at + length)
        match kind:
            case "insert":
                text = text[:at] + ODD[odd] + text[at:]
            case "replace":
                text = text[:at] + ODD[odd] + text[end:]
            case "value":
                colon = text.find(b": ", at) + 2
                line = text.find(b"\n", colon)
                text = text[:colon] + ODD[odd] + text[line:] if 2 <= colon < line else text
            case "drop":
                text = text[:at] + text[end:]
            case "repeat":
                text = text[:end] + text[at:end] * (odd + 1) + text[end:]
            case "cut":
                text = text[:at]
            case _:
                text = text[:at] + text[end : end + length] + text[at:end] + text[end + length :]
    return text


class EndlessError(BaseException):
    """An input took more than its share of the processor."""


@contextmanager
def limited() -> Generator[None]:
    def ring(_number: int, _frame: FrameType | None) -> None:
        raise EndlessError

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: a project with nothing but its dev stack; keys are derived once."""
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    shutil.copy(ROOT / "Pulumi.dev.yaml", tmp_path)
    shutil.copytree(ROOT / "stacks", tmp_path / "stacks")
    for variable in ("KUBECONFIG", "PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(passphrase, "_derive", cache(passphrase._derive))  # pyright: ignore[reportPrivateUsage] - a million rounds for each input would try nothing more
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def judge(reader: Reader, here: Path, text: bytes) -> None:
    (here / reader.file).write_bytes(text)
    before = files_of(here)
    with limited():
        said = reader.read()
    assert "defect" not in said, said
    assert "Traceback" not in said
    assert [each for each in said if each < " " and each not in "\n\t"] == [], "a terminal would obey it"
    assert files_of(here) == before, "it wrote"


@pytest.mark.parametrize("reader", READERS, ids=[each.name for each in READERS])
def test_a_damaged_document_is_read_or_refused_in_words(reader: Reader, here: Path) -> None:
    whole = reader.whole()
    judge(reader, here, whole)
    deep = [opening * 20_000 for opening in (b"[", b"{", b"? ", b"- ", b"{[", b"{a: ")]
    for text in (b"", BOMB, b"{}", *deep, b"\xff\xfe" + whole, whole.decode().encode("utf-16")):
        judge(reader, here, text)

    @settings(
        max_examples=counted(reader.usual, 2_500),
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow],
        report_multiple_bugs=False,
    )
    @given(edits=_edits)
    def any_damage(edits: list[Edit]) -> None:
        tried("damaged documents")
        judge(reader, here, damaged(whole, edits))

    any_damage()
