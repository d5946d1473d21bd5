"""Configuration of Azure Service Operator, and the settings Secret that it reads at startup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field

from components.aso_credentials import keys, resolution
from components.aso_credentials.credential import AsoCredential
from components.aso_credentials.field_types import Duration, Issuer
from components.aso_credentials.model import Data
from components.config.field_types import (
    ConfigModel,
    Flag,
    NamespaceName,
    ObjectName,
    Positive,
    Text,
    optional,
)


class FormerOperator(ConfigModel):
    """How the operator ran before, in what differs. It is trusted as well, until it was started again."""

    workload_identity_mode: Literal["relaxed", "strict"] | None = optional("Whose token identities trusted.")
    issuer: Issuer | None = optional("OIDC issuer URL that the cluster had.")
    service_account: ObjectName | None = optional("ServiceAccount it ran as.")


class Operator(ConfigModel):
    """How Azure Service Operator runs in the cluster; its chart makes it, not this stack."""

    namespace: NamespaceName = Field(
        default=keys.OPERATOR_NAMESPACE, description="Existing namespace of the operator."
    )
    service_account: ObjectName = Field(
        default=keys.OPERATOR_ACCOUNT,
        description="ServiceAccount it runs as (the chart's serviceAccount.name).",
    )
    workload_identity_mode: Literal["relaxed", "strict"] = Field(
        default="relaxed",
        description="Whose token identities trust: the operator's, or one of each namespace.",
    )
    issuer: Issuer | None = optional("OIDC issuer URL of the cluster, byte for byte.")
    multi_env: Flag = optional("Whether it serves several clouds (ALLOW_MULTI_ENV_MANAGEMENT).", False)

    formerly: FormerOperator | None = optional(
        "How it ran until now: trusted as well, while it was not started again."
    )
    allow_trust_change: Flag = optional(
        "Whether trust is removed before the operator was seen to run without it.", False
    )

    @property
    def trusted(self) -> Sequence[tuple[resolution.Operator, str | None]]:
        """Present and, while it is still trusted, former configuration, each with the token issuer."""
        now = (self.as_it_runs(strict=self.strict), self.issuer)
        former = self.formerly
        if former is None:
            return [now]
        strict = (former.workload_identity_mode or self.workload_identity_mode) == "strict"
        account = former.service_account or self.service_account
        before = replace(self.as_it_runs(strict=strict), account=account)
        return [now, (before, former.issuer or self.issuer)]

    @property
    def strict(self) -> bool:
        """Whether workload identity is in strict mode."""
        return self.workload_identity_mode == "strict"

    def as_it_runs(self, *, strict: bool) -> resolution.Operator:
        """Return the operator for resolving credentials. `strict`: whether in strict mode."""
        return resolution.Operator(self.namespace, self.multi_env, strict, self.service_account)


class RateLimit(ConfigModel):
    """How fast the operator calls Azure."""

    qps: Positive = Field(description="Requests a second.")
    bucket_size: Positive = Field(description="Requests in parallel.")


class GlobalSettings(ConfigModel):
    """`aso-controller-settings`. The operator reads it when it starts."""

    credential: AsoCredential | None = optional("For resources that no other credential serves; best absent.")
    sync_period: Duration | None = optional("Such as 1h, or never.")
    operator_mode: Literal["watchers", "webhooks", "watchers-and-webhooks"] | None = optional(
        "Parts that it runs."
    )
    target_namespaces: tuple[NamespaceName, ...] = optional("The only ones it looks at.", ())
    default_reconcile_policy: Literal["manage", "skip", "detach-on-delete"] | None = optional(
        "For resources that say none."
    )
    max_concurrent_reconciles: Positive | None = optional("Of each kind.")
    rate_limit: RateLimit | None = optional("How fast it calls Azure.")
    user_agent_suffix: Text | None = optional("Behind its name in calls to Azure.")

    def data(self, operator: Operator, own: Data) -> Data:
        """Return the data of the Secret: the three ids and exactly the other configured keys.

        `own`: data of the operator's credential, empty without one; its method is chosen by other keys than
        in a scoped Secret. Without a credential the ids are empty: the pods of the operator's chart require
        them to start (docs/compatibility.md).
        """
        limit = self.rate_limit
        by_token = self.credential is not None and self.credential.workload_identity is not None
        plain = {
            "AZURE_SYNC_PERIOD": self.sync_period,
            "AZURE_OPERATOR_MODE": self.operator_mode,
            keys.TARGET_NAMESPACES: ",".join(self.target_namespaces) or None,
            "DEFAULT_RECONCILE_POLICY": self.default_reconcile_policy,
            "MAX_CONCURRENT_RECONCILES": self.max_concurrent_reconciles,
            "RATE_LIMIT_MODE": limit and "bucket",
            "RATE_LIMIT_QPS": limit and limit.qps,
            "RATE_LIMIT_BUCKET_SIZE": limit and limit.bucket_size,
            "AZURE_USER_AGENT_SUFFIX": self.user_agent_suffix,
            keys.WORKLOAD_IDENTITY_MODE: "strict" if operator.strict else None,
            keys.ALLOW_MULTI_ENV: "true" if operator.multi_env else None,
            keys.USE_WORKLOAD_IDENTITY: "true" if by_token else None,
        }
        told = {key: str(value).encode() for key, value in plain.items() if value is not None}
        ids = dict.fromkeys(keys.REQUIRED, b"")
        return {**ids, **told, **{key: value for key, value in own.items() if key != keys.AUTH_MODE}}
