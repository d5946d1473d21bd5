"""The embedded deployment engine: speaks the gRPC protocol of Pulumi to a genuine program.

A stack is opened with `Workspace.open` and deployed with `preview`, `up`, `refresh`, `destroy` or `import_`,
each given `Options` (which name the providers, policy packs and parallelism) and a `Sink` that takes the
events; they return a `Result`. `display_for` and `PreviewDigest` are sinks that show a deployment.

What other packages may use of the engine is what this module names; each is loaded when first asked for.
Its parts, each knowing only those behind it: `show` and `deploy`, `policies`, `plugins`, `workspace`,
`state`, `project`, `model`, and the values, paths, URNs and wire format of `pulumi_sandbox.protocol`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pulumi_sandbox.engine.deploy.constructor import constructor_of as constructor_of
    from pulumi_sandbox.engine.deploy.constructor import how_to_use as how_to_use
    from pulumi_sandbox.engine.deploy.options import Import as Import
    from pulumi_sandbox.engine.deploy.options import Options as Options
    from pulumi_sandbox.engine.deploy.options import Result as Result
    from pulumi_sandbox.engine.deploy.start import destroy as destroy
    from pulumi_sandbox.engine.deploy.start import import_ as import_
    from pulumi_sandbox.engine.deploy.start import make_ready as make_ready
    from pulumi_sandbox.engine.deploy.start import preview as preview
    from pulumi_sandbox.engine.deploy.start import refresh as refresh
    from pulumi_sandbox.engine.deploy.start import up as up
    from pulumi_sandbox.engine.deploy.targets import Selection as Selection
    from pulumi_sandbox.engine.model.events import Diagnostic as Diagnostic
    from pulumi_sandbox.engine.model.events import Event as Event
    from pulumi_sandbox.engine.model.events import Op as Op
    from pulumi_sandbox.engine.model.events import Outcome as Outcome
    from pulumi_sandbox.engine.model.events import Outputs as Outputs
    from pulumi_sandbox.engine.model.events import Sink as Sink
    from pulumi_sandbox.engine.model.events import StdoutLine as StdoutLine
    from pulumi_sandbox.engine.model.events import StepFinished as StepFinished
    from pulumi_sandbox.engine.model.events import StepPlanned as StepPlanned
    from pulumi_sandbox.engine.model.resource import Resource as Resource
    from pulumi_sandbox.engine.model.resource import Snapshot as Snapshot
    from pulumi_sandbox.engine.plugins.process import Confinement as Confinement
    from pulumi_sandbox.engine.plugins.process import start_plugin as start_plugin
    from pulumi_sandbox.engine.plugins.provider_processes import Trusted as Trusted
    from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter as PassphraseCrypter
    from pulumi_sandbox.engine.project.program_config import ProgramConfig as ProgramConfig
    from pulumi_sandbox.engine.project.program_config import program_config as program_config
    from pulumi_sandbox.engine.project.project_file import Project as Project
    from pulumi_sandbox.engine.project.yaml_file import load_yaml as load_yaml
    from pulumi_sandbox.engine.project.yaml_file import merged as merged
    from pulumi_sandbox.engine.sealed import StandIns as StandIns
    from pulumi_sandbox.engine.sealed import recorded as recorded
    from pulumi_sandbox.engine.sealed import without_keys as without_keys
    from pulumi_sandbox.engine.sealed import written as written
    from pulumi_sandbox.engine.show.display import Display as Display
    from pulumi_sandbox.engine.show.display import PreviewDigest as PreviewDigest
    from pulumi_sandbox.engine.show.display import Serialised as Serialised
    from pulumi_sandbox.engine.show.display import display_for as display_for
    from pulumi_sandbox.engine.show.phrases import short_type as short_type
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
    "deploy.constructor": ("constructor_of", "how_to_use"),
    "deploy.options": ("Import", "Options", "Result"),
    "deploy.start": ("destroy", "import_", "make_ready", "preview", "refresh", "up"),
    "deploy.targets": ("Selection",),
    "model.events": (
        "Diagnostic",
        "Event",
        "Op",
        "Outcome",
        "Outputs",
        "Sink",
        "StdoutLine",
        "StepFinished",
        "StepPlanned",
    ),
    "model.resource": ("Resource", "Snapshot"),
    "plugins.process": ("Confinement", "start_plugin"),
    "plugins.provider_processes": ("Trusted",),
    "project.passphrase": ("PassphraseCrypter",),
    "project.project_file": ("Project",),
    "project.yaml_file": ("load_yaml", "merged"),
    "project.program_config": ("ProgramConfig", "program_config"),
    "sealed": ("StandIns", "recorded", "without_keys", "written"),
    "show.display": ("Display", "PreviewDigest", "Serialised", "display_for"),
    "show.phrases": ("short_type",),
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
