"""Plants deliberate faults one at a time, in copies of the tree, and runs their tests.

Exits with 1 when a fault survives that is not known to, or one is caught that is said to survive. With texts
as arguments, only faults whose reason or file holds one of them.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.mutants.faults import ROOT, Fault, faults

AT_ONCE: Final = 2
_LONGEST_SECONDS: Final = 900
"""For the tests of one fault: what they have not caught by then they do not catch."""
_QUIET: Final = ("-q", "-x", "-n", "0", "-p", "no:randomly", "-p", "no:cacheprovider", "--no-header")
_PASSED, _FAILED = 0, 1


def _copied(to: Path) -> Path:
    """Copy what is under version control, or would be."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, to / name)
    return to


def _is_caught(fault: Fault, tree: Path) -> bool:
    """Whether a test fails of it; anything else that ends the tests is an error of the fault."""
    path = tree / fault.file
    source = path.read_text(encoding="utf-8")
    path.write_text(fault.planted(source), encoding="utf-8")
    try:
        command = [sys.executable, "-m", "pytest", *_QUIET, *fault.tests]
        small = {key: text for key, text in os.environ.items() if key != "CREDFLEET_PROVE"}
        small |= {"CREDFLEET_SEARCH": "1", "PYTHONPATH": str(tree / "sandbox")}
        done = subprocess.run(
            command,
            cwd=tree,
            env=small,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LONGEST_SECONDS,
        )
    except subprocess.TimeoutExpired:
        _say(f"✗ {fault.why}: no answer in {_LONGEST_SECONDS} s")
        return False
    finally:
        path.write_text(source, encoding="utf-8")
    if done.returncode not in (_PASSED, _FAILED):
        raise RuntimeError(f"{fault.why}: the tests could not be run\n{done.stdout[-2000:]}")
    return done.returncode == _FAILED


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(only: Sequence[str]) -> int:
    """Plant them all, say of each what became of it, and count."""
    chosen = [fault for fault in faults() if not only or any(text in fault.why + fault.file for text in only)]
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="credfleet-mutants-") as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(AT_ONCE):
            trees.put(_copied(Path(folder) / str(number)))

        def planted(fault: Fault) -> bool:
            tree = trees.get()
            try:
                is_caught = _is_caught(fault, tree)
            finally:
                trees.put(tree)
            end = "caught  " if is_caught else f"SURVIVED {fault.survives}"
            _say(f"{time.monotonic() - began:6.0f} s  {Path(fault.file).name:18} {fault.why}: {end}")
            return is_caught

        with ThreadPoolExecutor(AT_ONCE) as pool:
            caught = list(pool.map(planted, chosen))
    wrong = [f.why for f, is_caught in zip(chosen, caught, strict=True) if is_caught == bool(f.survives)]
    for why in wrong:
        _say(f"✗ not as expected: {why}")
    _say(f"tried {len(chosen)} deliberate faults, of which {sum(caught)} were caught")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
