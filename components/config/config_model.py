"""The base of all models of the configuration."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class ConfigModel(BaseModel):
    """A part of the configuration: unknown keys are errors, nothing changes later, no error shows a value."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, hide_input_in_errors=True
    )
