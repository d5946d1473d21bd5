"""What `deliverTo` of an account holds: the copy of its Secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from pydantic import Field, model_validator

from components.errors import ProjectionError
from components.labels import ASO_CREDENTIAL
from components.projection.keys import AsoMethod, KeyPlan, plan_keys
from components.settings.noun import Noun
from components.settings.words import ObjectName, Text, unfit


class Delivery(Noun):
    """A copy of the claimed account's Secret in the tenant's namespace, which follows its rotation."""

    name: ObjectName | None = Field(default=None, description="Name of the copy.")
    aso_credential: AsoMethod | None = Field(
        default=None, description="Method of an Azure Service Operator credential; the copy has its keys."
    )
    keys: Mapping[Text, Text] = Field(
        default={}, description="Key of the copy → key of the account's Secret; empty means all of them."
    )

    @property
    def target(self) -> str:
        """The name of the copy; for ASO the one it looks for by itself."""
        return self.name or ASO_CREDENTIAL

    @property
    def plan(self) -> KeyPlan:
        """Which keys the copy has, and where they come from; raises ProjectionError for unfit ones."""
        return plan_keys(self.keys, self.aso_credential)

    @model_validator(mode="after")
    def _can_be_written(self) -> Self:
        if self.name is None and self.aso_credential is None:
            raise unfit("a copy has a name, else nobody would find it", "add name, or asoCredential")
        try:
            _ = self.plan
        except ProjectionError as error:
            raise unfit(error.cause, error.mend) from None
        return self
