"""The provider's options: which ones are taken, and what they mean."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pulumi_sandbox.protocol.values import Properties
from pulumi_sandbox.providers.contract import Problem
from pulumi_sandbox.providers.inputs import missing_options

ENDPOINT: Final = "secretManagerCustomEndpoint"
VARIABLE: Final = "GOOGLE_SECRET_MANAGER_CUSTOM_ENDPOINT"
"""What the genuine provider reads as well where the option is not given."""

_REQUIRED: Final = {
    ENDPOINT: "the sandbox reaches no real Google Cloud; set it to an emulator (http://127.0.0.1:…/v1/), "
    "or use the Pulumi CLI",
    "accessToken": "the sandbox looks for no credentials; set any text that is not a real token",
}


@dataclass(frozen=True, slots=True)
class GoogleOptions:
    """The options of one provider."""

    endpoint: str
    token: str = field(default="", repr=False)
    project: str = ""


def problems(config: Properties) -> list[Problem]:
    """Require endpoint and token: this provider speaks to an emulator only, and looks for no credentials."""
    named = {ENDPOINT: os.environ[VARIABLE]} if os.environ.get(VARIABLE) else {}
    return missing_options({**named, **config}, _REQUIRED)


def read(given: Mapping[str, str]) -> GoogleOptions:
    """Read the options from what Configure is given: texts by the options' names."""
    return GoogleOptions(
        endpoint=given.get(ENDPOINT) or os.environ.get(VARIABLE, ""),
        token=given.get("accessToken", ""),
        project=given.get("project", ""),
    )
