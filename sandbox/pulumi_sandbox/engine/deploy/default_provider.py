"""The provider that serves a package when the program names none."""

from __future__ import annotations

import re

from pulumi_sandbox.engine.model.goal import INTERNAL, Goal
from pulumi_sandbox.engine.plugins.provider_processes import DYNAMIC
from pulumi_sandbox.engine.project.program_config import ProgramConfig
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import Secret, Value


def default_provider(package: str, version: str, config: ProgramConfig) -> Goal:
    """Describe a default provider; an empty version is the only one there is.

    It is given the configuration of its namespace; the one for dynamic providers the whole, by full keys.
    """
    inputs: dict[str, Value] = {}
    for key, text in config.values.items():
        namespace, _, name = key.partition(":")
        if package in (namespace, DYNAMIC):
            value = Secret(text) if key in config.secret_keys else text
            inputs[key if package == DYNAMIC else name] = value
    name = "default"
    if version:
        inputs |= {"version": version, INTERNAL: {}}
        name += "_" + re.sub(r"[.+-]", "_", version)
    return Goal(type=f"{urns.PROVIDER_TYPE_PREFIX}{package}", name=name, custom=True, inputs=inputs)
