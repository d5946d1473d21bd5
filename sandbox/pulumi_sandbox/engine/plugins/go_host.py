"""Runs a Pulumi program in Go; started as a script in the program's folder, with its options as arguments.

It reads from standard input where the engine is and what the configuration is, and becomes the program: the
one named by the first argument, or what `go build` makes of the folder, at the second argument or in a folder
of the engine's. The SDK for Go reads all it is told from the environment, the configuration too.
Nothing of this package may be imported here. See sandbox/docs/engine-facts.md, the program's process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn


def main(binary: str, target: str) -> NoReturn:
    """Become the program that standard input describes."""
    task: dict[str, Any] = json.load(sys.stdin)
    if binary:
        program = binary if Path(binary).exists() else shutil.which(binary)
        if program is None:
            sys.exit(f"there is no {binary}, neither in {Path.cwd()} nor on PATH")
    else:
        program = target or str(Path(task["scratch"], "program"))
        built = ("go", "build", "-buildvcs=false", "-o", program, "-trimpath", "-ldflags", "-w -s")
        if shutil.which("go") is None:
            sys.exit("there is no go on PATH: install Go, or name what is built in `runtime.options.binary`")
        if subprocess.run(built, check=False).returncode:
            sys.exit(f"go build failed in {Path.cwd()}: what it says is above")
    os.execve(  # noqa: S606 - no shell has a part in it
        Path(program).resolve(), [program], {**os.environ, **task["environment"], **_told(task)}
    )


def _told(task: dict[str, Any]) -> dict[str, str]:
    """Return the variables by which Pulumi's language host tells a program the same."""
    return {
        "PULUMI_CONFIG": json.dumps(task["config"]),
        "PULUMI_CONFIG_SECRET_KEYS": json.dumps(task["secretKeys"]),
        "PULUMI_DRY_RUN": json.dumps(task["preview"]),
        "PULUMI_ENGINE": task["monitor"],
        "PULUMI_MONITOR": task["monitor"],
        "PULUMI_ORGANIZATION": task["organization"],
        "PULUMI_PARALLEL": str(task["parallel"]),
        "PULUMI_PROJECT": task["project"],
        "PULUMI_ROOT_DIRECTORY": task["root"],
        "PULUMI_STACK": task["stack"],
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
