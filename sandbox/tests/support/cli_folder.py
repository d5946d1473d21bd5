"""A folder with the Pulumi CLI and what it runs Python with, the language host of this checkout among it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from pulumi_sandbox import language_host, pulumi_cli
from pulumi_sandbox.services.progress import silent

HOST: Final = "pulumi-language-python"
_SCRIPTS: Final = ("pulumi-language-python-exec", "pulumi-resource-pulumi-python")


def furnish(folder: Path) -> Path:
    """Make the folder. Its language host is the one under test, whichever the CLI has beside it."""
    found = pulumi_cli.find("credfleet", silent).program.resolve()
    folder.mkdir()
    for name in _SCRIPTS:
        shutil.copy(found.parent / name, folder)
    (folder / found.name).symlink_to(found)
    host = folder / HOST
    host.write_text(f"#!{sys.executable}\n{Path(language_host.__file__).read_text()}")
    host.chmod(0o755)
    return folder


def environment(folder: Path, home: Path) -> dict[str, str]:
    """Return the variables with which the CLI of a folder keeps everything below `home`."""
    (home / "state").mkdir(parents=True, exist_ok=True)
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PULUMI_")}
    return {
        **kept,
        "PATH": os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PULUMI_BACKEND_URL": (home / "state").as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": "of a test",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_HOME": str(home / "pulumi"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
