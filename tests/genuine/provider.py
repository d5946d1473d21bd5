"""Pulumi's own Kubernetes provider, built once per machine; `python -m tests.genuine.provider` builds it.

It is of the newest module that the Go proxy serves, which is older than the release of the Python package: it
lacks `upsertExistingObjects`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pulumi_sandbox.progress_line import ProgressLine
from pulumi_sandbox.services.build import GoModule, binaries, cache_folder
from pulumi_sandbox.services.progress import Progress, silent

VERSION: Final = "4.25.0"
"""The release that the pinned module is of."""

_MODULE: Final = "github.com/pulumi/pulumi-kubernetes/provider/v4"
KUBERNETES: Final = GoModule(
    Path(__file__).parent / "kubernetes-provider",
    "Pulumi's Kubernetes provider",
    _MODULE,
    {"pulumi-resource-kubernetes": "."},
    lambda _: {f"{_MODULE}/pkg/version.Version": VERSION},
    beside=tuple(
        f"cmd/pulumi-resource-kubernetes/{name}" for name in ("schema.json", "terraform-mapping.json")
    ),
    usual_seconds=440.0,
)


def folder(progress: Progress = silent) -> Path:
    """Return the folder with the provider, for PATH; it is built first where it is not."""
    return binaries(progress, cache_folder("credfleet").with_name(KUBERNETES.folder.name), KUBERNETES)


if __name__ == "__main__":
    with ProgressLine() as line:
        folder(line)
