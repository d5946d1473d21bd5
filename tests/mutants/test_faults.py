"""Each deliberate fault can be planted: its text stands once in its file, and its tests are there.

That some test fails of each is not proved here: `make prove` plants them, one at a time.
"""

import ast
import subprocess
import sys

import pytest
import yaml

from tests.mutants.faults import ROOT, Fault, faults

FAULTS = faults()


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.why for fault in FAULTS])
def test_a_fault_is_planted_in_one_place_and_leaves_python(fault: Fault) -> None:
    source = (ROOT / fault.file).read_text(encoding="utf-8")
    assert source.count(fault.text) == 1
    assert _parsed(fault, fault.planted(source)) != _parsed(fault, source)


def _parsed(fault: Fault, source: str) -> object:
    return ast.dump(ast.parse(source)) if fault.file.endswith(".py") else yaml.safe_load(source)


def test_there_are_as_many_as_were_asked_for_and_each_says_something_else() -> None:
    assert len(FAULTS) >= 60
    assert len({fault.why for fault in FAULTS}) == len(FAULTS)


def test_the_tests_of_every_fault_are_there() -> None:
    paths = {path for fault in FAULTS for path in fault.tests}
    assert {path for path in paths if not (ROOT / path.partition("::")[0]).exists()} == set()
    ids = sorted(path for path in paths if "::" in path)
    collect = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        *ids,
    ]
    done = subprocess.run(collect, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
