"""How the provider of a package is started from its source: a folder with PulumiPlugin.yaml, in Python."""

from pathlib import Path

from pulumi_sandbox.engine.project.python_runtime import interpreter
from pulumi_sandbox.engine.project.yaml_file import load_map


def package_command(folder: Path, python: Path) -> list[str]:
    """Return the command that starts a package's provider, without the engine's address.

    python: runs a folder that names no virtual environment of its own. Raises SandboxError `file-missing`,
    `yaml-invalid`, and `package-unsupported` for what only the genuine CLI starts.
    """
    written = load_map(folder / "PulumiPlugin.yaml")
    return [str(interpreter(written, python, "package-unsupported")), "-u", str(folder)]
