"""Dynamic resources of a pull secret for programs; `provider` has their implementation."""

from __future__ import annotations

from pulumi import Output

from components.dynamic import DynamicResource
from components.projection.provider import MarkedArgs
from components.pull_secret.provider import (
    PullSecretCopyProvider,
    PullSecretRetentionArgs,
    PullSecretRetentionProvider,
    PullSecretStartArgs,
    PullSecretStartProvider,
    PullSecretStatusArgs,
    PullSecretStatusProvider,
    PullSecretVerificationArgs,
    PullSecretVerificationProvider,
    PullSecretVersionArgs,
    PullSecretVersionProvider,
)


class PullSecretStart(DynamicResource[PullSecretStartArgs]):
    """Whether a cluster was ready once. `begun`: unknown in the preview that finds out."""

    provider = PullSecretStartProvider

    begun: Output[bool]


class PullSecretVersion(DynamicResource[PullSecretVersionArgs]):
    """Version that follows an external pull secret. `digest`: of its content (`digest_of`)."""

    provider = PullSecretVersionProvider

    version: Output[str]
    digest: Output[str]


class PullSecretCopy(DynamicResource[MarkedArgs]):
    """Secret with which a cluster pulls."""

    provider = PullSecretCopyProvider

    namespace: Output[str]
    target_name: Output[str]


class PullSecretVerification(DynamicResource[PullSecretVerificationArgs]):
    """Version that was read back and has the expected content.

    `reference`: its name. `latest`: number that the alias returns, `overtaken`: message if that is another
    one. `verified_at`: RFC 3339.
    """

    provider = PullSecretVerificationProvider

    reference: Output[str]
    version: Output[int]
    latest: Output[int]
    overtaken: Output[str]
    verified_at: Output[str]


class PullSecretRetention(DynamicResource[PullSecretRetentionArgs]):
    """Retention of versions that are no longer required. `replaced`: result for the last one."""

    provider = PullSecretRetentionProvider

    replaced: Output[str]


class PullSecretStatus(DynamicResource[PullSecretStatusArgs]):
    """Report to HyperFleet. `trouble`: why it failed, empty if it did not."""

    provider = PullSecretStatusProvider

    trouble: Output[str]
