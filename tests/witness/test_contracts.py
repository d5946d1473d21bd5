"""Contracts that tests hold clients and stand-ins to: the kept ones are those that were published.

Whether they are kept is asserted where stand-ins are served, by `served` in sandbox/tests/support/clouds.py.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.tests.witness.reduce import PUBLISHED, Published, document
from tests.support.proving import PROVES, tried
from tests.witness.published import published


def fetched(contract: Published, folder: Path) -> bytes:
    """Fetch a contract; skips a test that names a place which cannot be reached."""
    if "pypi.org" in contract.source:
        package = f"{contract.source.rpartition('/')[2]}=={contract.version}"
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--dest",
            str(folder),
            package,
        ]
        subprocess.run(command, check=True)
        (wheel,) = folder.iterdir()
        return wheel.read_bytes()
    raw = contract.source.replace("//github.com/", "//raw.githubusercontent.com/")
    known = json.loads(contract.kept.read_text(encoding="utf-8"))["source"]
    return published(f"{raw}/{contract.version}/{contract.file}", known["sha256"])


@pytest.mark.built
@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.skipif(not PROVES, reason="make prove WHAT=witness fetches what was published")
def test_a_kept_contract_is_what_was_published(name: str, tmp_path: Path) -> None:
    contract = PUBLISHED[name]
    now = document(contract, fetched(contract, tmp_path))
    assert now == json.loads(contract.kept.read_text(encoding="utf-8"))
    tried(f"{name} {contract.version}: operations", sum(map(len, now["paths"].values())))
