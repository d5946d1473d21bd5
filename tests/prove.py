"""`make prove`: runs what takes long, at its full counts, and says at the end what was tried.

Without a word, all that the claim protocol is proved with. Words choose one part; `fire`, what stands under
fire: readers, updates that are killed, histories of claims; `witness`, what software of others says. Three
parts run at a time on two cores, since some wait much for an API server. What a part printed is kept in
`.sandbox/prove/`, and what one that failed had written where it says. Exits with 1 when a part failed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
KEPT: Final = ROOT / ".sandbox" / "prove"

_PYTEST: Final = ("-m", "pytest", "-q", "-n", "0")
_UNIT: Final = "tests/unit/account_pool"
_TRIED: Final = re.compile(r"^tried (\d+) (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """One thing that is run: its name, and the arguments of Python."""

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Done:
    """How a part ended: its exit code, how long it took, and what it tried, each a number and of what."""

    part: Part
    code: int
    seconds: float
    tried: tuple[tuple[int, str], ...]


PROTOCOL: Final = (
    Part("model", (*_PYTEST, "-s", f"{_UNIT}/test_explorer.py")),
    Part("pools", (*_PYTEST, f"{_UNIT}/test_agreement.py")),
    Part(
        "cluster",
        (
            *_PYTEST,
            *(f"tests/cluster/{each}.py" for each in ("test_claims_agree", "test_claims_under_faults")),
        ),
    ),
    Part("worlds", (*_PYTEST, f"{_UNIT}/test_worlds.py")),
    Part("writes", (*_PYTEST, f"{_UNIT}/test_writes_of_the_pool.py")),
    Part("admission", (*_PYTEST, "tests/cluster/test_admission_by_machine.py")),
    Part("tenants", (*_PYTEST, "tests/operations/review/test_tenant_files.py")),
    Part("edits", (*_PYTEST, "-s", "tests/operations/review/test_edits.py")),
    Part("kills", (*_PYTEST, "tests/program", "-k", "killed")),
    Part("faults", ("-m", "tests.mutants", "components/")),
)
FIRE: Final = (
    Part("histories", (*_PYTEST, "tests/fire/claims/test_histories.py")),
    Part("calls", (*_PYTEST, "tests/fire/stack")),
    Part("wipes", (*_PYTEST, "tests/cluster/test_cleaners.py")),
    Part("documents", (*_PYTEST, "tests/fire/readers")),
)
STORM: Final = Part("storm", (*_PYTEST, "tests/fire/storm/test_storm.py"))
"""Takes both cores for as long as half of the others: only where it is named, as the next."""
_ROTATION: Final = ("tests/fire/storm/test_rotation.py", "tests/operations/pool/test_key_programs.py")
ROTATION: Final = Part("rotation", (*_PYTEST, *_ROTATION))
WITNESS: Final = Part("witness", (*_PYTEST, "tests/witness", "tests/cluster/test_eso_manifests.py"))
"""Fetches what others published: only where it is named."""
REPORT: Final = Part("report", (*_PYTEST, "tests/witness/test_report_in_a_browser.py"))
"""Takes pictures of the report; needs Chromium."""
WORDS: Final = {part.name: (part,) for part in (*PROTOCOL, *FIRE, STORM, ROTATION, WITNESS, REPORT)} | {
    "fire": FIRE,
    "protocol": PROTOCOL,
}


def _run(part: Part, files: Path) -> Done:
    """Run a part, which writes its files in a folder of its own: no other run of pytest may clean that up."""
    began = time.monotonic()
    log = KEPT / f"{part.name}.log"
    _say(f"· {part.name}: begun; {log.relative_to(ROOT)}")
    with log.open("w", encoding="utf-8") as to:
        command = [sys.executable, *part.arguments]
        own = files / part.name
        own.mkdir()
        environment = {**os.environ, "CREDFLEET_PROVE": "1", "PYTEST_DEBUG_TEMPROOT": str(own)}
        code = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=to, stderr=to, check=False
        ).returncode
    text = log.read_text(encoding="utf-8")
    tried = [(int(count), what) for count, what in _TRIED.findall(text)]
    if code == 0:
        shutil.rmtree(own, ignore_errors=True)
    done = Done(part, code, time.monotonic() - began, tuple(tried))
    kept = "" if code == 0 else f", {own}"
    _say(f"{'✓' if code == 0 else '✗'} {part.name}: {done.seconds:.0f} s; {log.relative_to(ROOT)}{kept}")
    return done


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _table(parts: Sequence[Done]) -> str:
    tried = Counter[str]()
    for done in parts:
        for count, what in done.tried:
            tried[what] += count
    rows = [f"| {what} | {count:,} |" for what, count in tried.items()]
    return "\n".join(["| Tried | |", "|---|---|", *rows])


def chosen(arguments: Sequence[str] | None = None) -> list[Part]:
    """Return the parts that a command line means, each once."""
    parser = argparse.ArgumentParser("python -m tests.prove", description=__doc__)
    parser.add_argument("what", nargs="*", help=f"{', '.join(WORDS)}; else protocol")
    words = parser.parse_args(arguments).what or ["protocol"]
    for unknown in set(words) - WORDS.keys():
        parser.error(f"there is no {unknown}; there are {', '.join(WORDS)}")
    return [*dict.fromkeys(part for word in words for part in WORDS[word])]


def main() -> int:
    """Run the parts that are chosen, three at a time, and print what they tried."""
    parts = chosen()
    KEPT.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    files = Path(tempfile.mkdtemp(prefix="credfleet-prove-"))
    with ThreadPoolExecutor(3) as pool:
        ended = [*pool.map(_run, parts, repeat(files))]
    with suppress(OSError):  # what failed is left there
        files.rmdir()
    _say(f"{_table(ended)}\n{(time.monotonic() - began) / 60:.0f} minutes")
    return int(any(done.code for done in ended))


if __name__ == "__main__":
    raise SystemExit(main())
