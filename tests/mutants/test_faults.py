"""Each deliberate fault can be planted: its text stands once in its file, and its tests are there.

That some test fails of each is not proved here: `make prove` plants them, one at a time.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.mutants.faults import ROOT, Fault, faults

FAULTS = faults()


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.why for fault in FAULTS])
def test_a_fault_is_planted_in_one_place_and_leaves_python(fault: Fault) -> None:
    source = (ROOT / fault.file).read_text(encoding="utf-8")
    assert source.count(fault.text) == 1
    assert _parsed(fault, fault.planted(source)) != _parsed(fault, source)


def test_no_fault_is_caught_for_a_name_that_its_file_does_not_have(tmp_path: Path) -> None:
    for number, fault in enumerate(each for each in FAULTS if each.file.endswith(".py")):
        planted = fault.planted((ROOT / fault.file).read_text(encoding="utf-8"))
        (tmp_path / f"fault_{number}.py").write_text(planted, encoding="utf-8")
    check = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", tmp_path]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def _parsed(fault: Fault, source: str) -> object:
    return ast.dump(ast.parse(source)) if fault.file.endswith(".py") else yaml.safe_load(source)


def test_there_are_as_many_as_were_asked_for_and_each_says_something_else() -> None:
    assert len(FAULTS) >= 60
    assert len({fault.why for fault in FAULTS}) == len(FAULTS)


def test_the_tests_of_every_fault_are_there() -> None:
    paths = {path for fault in FAULTS for path in fault.tests}
    assert {path for path in paths if not (ROOT / path.partition("::")[0]).exists()} == set()
    ids = sorted(path for path in paths if "::" in path)
    options = "-m pytest --collect-only -q -n 0 -p no:cacheprovider"
    collect = [sys.executable, *options.split(), *ids]
    done = subprocess.run(collect, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
