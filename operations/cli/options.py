"""The options that several commands share, each defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

StackOption = Annotated[str, typer.Option("--stack", "-s", help="The stack.", show_default=True)]
KubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig", metavar="FILE", help="Use this cluster of yours instead of the sandbox's own."
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
ParallelOption = Annotated[
    int, typer.Option("--parallel", "-p", min=1, help="How many steps may run at the same time.")
]
ExpectNoChangesOption = Annotated[
    bool, typer.Option("--expect-no-changes", help="Fail with exit code 7 when anything changes.")
]
PolicyPackOption = Annotated[
    list[Path] | None,
    typer.Option("--policy-pack", metavar="FOLDER", help="Policy packs instead of the project's policies/."),
]
NamespaceOption = Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the pool.")]
ClusterOption = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig", metavar="FILE", help="The cluster; else KUBECONFIG, else the sandbox's own."
    ),
]
ContextOption = Annotated[
    str | None,
    typer.Option("--context", metavar="NAME", help="Context of the kubeconfig; else its current one."),
]
