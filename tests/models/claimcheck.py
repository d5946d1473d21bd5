"""Runs the model checker of the claim protocol.

`python -m tests.models.claimcheck -small` explores the small scope; see models/claims/README.md.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.go_program import built


def program() -> Path:
    """Return the path of the built checker; raises as `built`."""
    return built(Path(__file__).parents[2] / "models" / "claims", "claimcheck")


def main() -> int:
    """Run the checker with the arguments of this command."""
    return subprocess.run([str(program()), *sys.argv[1:]], check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
