"""The dynamic resources of a pull secret as a program declares them; what they do is in `provider`."""

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
    """Whether a cluster was ready for its pull secret once. begun: unknown in the preview that finds out."""

    provider = PullSecretStartProvider

    begun: Output[bool]


class PullSecretVersion(DynamicResource[PullSecretVersionArgs]):
    """A version that follows a pull secret which is elsewhere. digest: of what it holds (`digest_of`)."""

    provider = PullSecretVersionProvider

    version: Output[str]
    digest: Output[str]


class PullSecretCopy(DynamicResource[MarkedArgs]):
    """The Secret that a cluster pulls with."""

    provider = PullSecretCopyProvider

    namespace: Output[str]
    target_name: Output[str]


class PullSecretVerification(DynamicResource[PullSecretVerificationArgs]):
    """A version that was read back, and is what was given.

    reference: its name. latest: the number others get, overtaken: what is to be said when it is another one.
    verified_at: when, RFC 3339.
    """

    provider = PullSecretVerificationProvider

    reference: Output[str]
    version: Output[int]
    latest: Output[int]
    overtaken: Output[str]
    verified_at: Output[str]


class PullSecretRetention(DynamicResource[PullSecretRetentionArgs]):
    """What becomes of versions that are not needed any more. replaced: what became of the last one."""

    provider = PullSecretRetentionProvider

    replaced: Output[str]


class PullSecretStatus(DynamicResource[PullSecretStatusArgs]):
    """What HyperFleet was told. trouble: why it was not, empty when it was."""

    provider = PullSecretStatusProvider

    trouble: Output[str]
