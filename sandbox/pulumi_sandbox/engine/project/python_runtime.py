"""Which Python runs a folder that a file describes: the source of a package, a policy pack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pulumi_sandbox.documents import Document
from pulumi_sandbox.engine.project.entries import entry, folder
from pulumi_sandbox.errors import SandboxError


def interpreter(written: Document, default: Path, unsupported: str) -> Path:
    """Return what runs the folder of a file: its virtual environment's Python, or the default.

    Raises Unreadable for what is of another type than it has to be; SandboxError with the code `unsupported`
    for what only the genuine CLI runs.
    """
    is_map = isinstance(written.data.get("runtime"), dict)
    name = entry(written, "", "runtime", *(["name"] if is_map else []))
    options = entry(written, dict[str, Any](), "runtime", "options")
    strange = [f"runtime {name!r}"] if name != "python" else []
    strange += [f"runtime option `{key}`" for key in options.keys() - {"toolchain", "virtualenv"}]
    if options.get("toolchain", "pip") != "pip":
        strange.append(f"toolchain {options['toolchain']!r}")
    if strange:
        raise SandboxError(
            code=unsupported,
            place=written.mark.file,
            cause=f"the embedded engine does not know {strange[0]}",
            mend="use the Pulumi CLI, or Python's virtual environments, which pip fills",
        )
    own = ("runtime", "options", "virtualenv")
    here = Path(written.mark.file).parent
    return folder(written, here, "", *own) / "bin" / "python" if entry(written, "", *own) else default
