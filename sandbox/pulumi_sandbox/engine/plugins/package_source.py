"""How the provider of a package is started from its source: a folder with PulumiPlugin.yaml, in Python."""

from pathlib import Path
from typing import Any

from pulumi_sandbox.engine.project.yaml_file import load_yaml
from pulumi_sandbox.errors import SandboxError


def package_command(folder: Path, python: Path) -> list[str]:
    """Return the command that starts a package's provider, without the engine's address.

    python: runs a folder that names no virtual environment of its own. Raises SandboxError `file-missing`,
    `yaml-invalid`, and `package-unsupported` for what only the genuine CLI starts.
    """
    path = folder / "PulumiPlugin.yaml"
    runtime: Any = load_yaml(path).get("runtime")
    name, options = (
        (runtime.get("name"), runtime.get("options") or {}) if isinstance(runtime, dict) else (runtime, {})
    )
    strange = [f"runtime {name!r}"] if name != "python" else []
    strange += [f"runtime option `{key}`" for key in options.keys() - {"toolchain", "virtualenv"}]
    if options.get("toolchain", "pip") != "pip":
        strange.append(f"toolchain {options['toolchain']!r}")
    if strange:
        raise SandboxError(
            code="package-unsupported",
            place=str(path),
            cause=f"the embedded engine does not know {strange[0]}",
            mend="start the provider yourself and name it in PULUMI_DEBUG_PROVIDERS, or use the Pulumi CLI",
        )
    if "virtualenv" in options:
        python = folder / options["virtualenv"] / "bin" / "python"
    return [str(python), "-u", str(folder)]
