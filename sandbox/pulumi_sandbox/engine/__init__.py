"""The files of a stack and its state at rest, read without Pulumi.

What other packages may use is what this module names; each is loaded when first asked for. Its parts, each
knowing only those behind it: `workspace`, `state`, `project`, `model`, and the values, paths and URNs of
`pulumi_sandbox.protocol`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pulumi_sandbox.engine.model.resource import Resource as Resource
    from pulumi_sandbox.engine.model.resource import Snapshot as Snapshot
    from pulumi_sandbox.engine.model.short_type import short_type as short_type
    from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter as PassphraseCrypter
    from pulumi_sandbox.engine.project.program_config import ProgramConfig as ProgramConfig
    from pulumi_sandbox.engine.project.program_config import program_config as program_config
    from pulumi_sandbox.engine.project.project_file import Project as Project
    from pulumi_sandbox.engine.project.yaml_file import load_yaml as load_yaml
    from pulumi_sandbox.engine.project.yaml_file import merged as merged
    from pulumi_sandbox.engine.sealed import StandIns as StandIns
    from pulumi_sandbox.engine.sealed import recorded as recorded
    from pulumi_sandbox.engine.sealed import written as written
    from pulumi_sandbox.engine.state.checkpoint import decode as decode
    from pulumi_sandbox.engine.state.checkpoint import verify as verify
    from pulumi_sandbox.engine.state.moving import finish as finish
    from pulumi_sandbox.engine.state.moving import regrouped as regrouped
    from pulumi_sandbox.engine.state.moving import replace_together as replace_together
    from pulumi_sandbox.engine.state.store import state_text as state_text
    from pulumi_sandbox.engine.workspace import StackAtRest as StackAtRest
    from pulumi_sandbox.engine.workspace import Workspace as Workspace
    from pulumi_sandbox.engine.workspace import find_backend as find_backend
    from pulumi_sandbox.engine.workspace import find_passphrase as find_passphrase

PUBLIC: Final = {
    "model.resource": ("Resource", "Snapshot"),
    "project.passphrase": ("PassphraseCrypter",),
    "project.project_file": ("Project",),
    "project.yaml_file": ("load_yaml", "merged"),
    "project.program_config": ("ProgramConfig", "program_config"),
    "sealed": ("StandIns", "recorded", "written"),
    "model.short_type": ("short_type",),
    "state.checkpoint": ("decode", "verify"),
    "state.moving": ("finish", "regrouped", "replace_together"),
    "state.store": ("state_text",),
    "workspace": ("StackAtRest", "Workspace", "find_backend", "find_passphrase"),
}
"""Module → what it gives to the world."""


def __getattr__(name: str) -> Any:
    for module, names in PUBLIC.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
