"""Where Google keeps an entry, which is settled when it is made: another place is another entry."""

from __future__ import annotations

from collections.abc import Sequence

from pulumi_gcp import secretmanager
from pulumi_gcp.secretmanager.outputs import (
    GetSecretsSecretReplicationUserManagedReplicaResult,
    GetSecretsSecretResult,
    SecretReplication,
)


def replication_in(locations: Sequence[str]) -> secretmanager.SecretReplicationArgs:
    """Return what is asked for a new entry: these places, or any that Google chooses."""
    if not locations:
        return secretmanager.SecretReplicationArgs(auto=secretmanager.SecretReplicationAutoArgs())
    replicas = [
        secretmanager.SecretReplicationUserManagedReplicaArgs(location=location) for location in locations
    ]
    return secretmanager.SecretReplicationArgs(
        user_managed=secretmanager.SecretReplicationUserManagedArgs(replicas=replicas)
    )


def replication_of(entry: GetSecretsSecretResult) -> secretmanager.SecretReplicationArgs:
    """Return what an entry has: asking for anything else would delete it, to make it anew elsewhere."""
    (kept,) = entry.replications
    if not kept.user_manageds:
        keys = [each.kms_key_name for auto in kept.autos for each in auto.customer_managed_encryptions]
        encryption = secretmanager.SecretReplicationAutoCustomerManagedEncryptionArgs
        return secretmanager.SecretReplicationArgs(
            auto=secretmanager.SecretReplicationAutoArgs(
                customer_managed_encryption=encryption(kms_key_name=keys[0]) if keys else None
            )
        )
    replicas = [
        secretmanager.SecretReplicationUserManagedReplicaArgs(
            location=replica.location, customer_managed_encryption=_key_of(replica)
        )
        for managed in kept.user_manageds
        for replica in managed.replicas
    ]
    return secretmanager.SecretReplicationArgs(
        user_managed=secretmanager.SecretReplicationUserManagedArgs(replicas=replicas)
    )


def locations_of(replication: SecretReplication) -> Sequence[str]:
    """Return where an entry is kept; nothing means that Google chose."""
    managed = replication.user_managed
    return sorted(replica.location for replica in managed.replicas) if managed else []


def list_misplaced(kept: Sequence[str], wanted: Sequence[str]) -> Sequence[str]:
    """Say that an entry stays where it is although the configuration names another place."""
    if kept == sorted(wanted):
        return []
    where, there = (", ".join(each) or "automatic replication" for each in (kept, sorted(wanted)))
    return [
        f"its entry stays in {where}, and locations asks for {there}: that is settled when an entry is made"
        " → set locations back; or delete the entry, refresh, and update"
    ]


def _key_of(
    replica: GetSecretsSecretReplicationUserManagedReplicaResult,
) -> secretmanager.SecretReplicationUserManagedReplicaCustomerManagedEncryptionArgs | None:
    encryption = secretmanager.SecretReplicationUserManagedReplicaCustomerManagedEncryptionArgs
    for each in replica.customer_managed_encryptions:
        return encryption(kms_key_name=each.kms_key_name)
    return None
