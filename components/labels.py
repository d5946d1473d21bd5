"""Label and annotation keys that credfleet writes on Kubernetes objects, and their fixed values.

Two label keys have no prefix, because existing pools already use them. For the writers of each key, see
docs/design/claim-protocol.md, Objects and keys.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "credfleet.io/"

HYPERSCALER_TYPE: Final = "hyperscaler-type"
TENANT_NAME: Final = "tenant-name"
EU_ACCESS: Final = "eu-access"
SHARED: Final = f"{PREFIX}shared"
TENANT: Final = f"{PREFIX}tenant"
ACCOUNT_ID: Final = f"{PREFIX}account-id"
EXPIRES_AT: Final = f"{PREFIX}expires-at"
"""Annotation with the time at which the key of an account expires."""
BRING_YOUR_OWN: Final = f"{PREFIX}bring-your-own"
"""`true` on an account that came with its tenant. Only such accounts are declared with an owner."""

ASO_CREDENTIAL: Final = "aso-credential"
"""Name of the Secret that Azure Service Operator uses by default for a namespace."""

HYPERSCALERS: Final = ("alicloud", "aws", "azure", "gcp", "gdch", "openstack")
"""Clouds of accounts in a pool. An account type is one of them, with or without `_<region>` suffixes."""


def hyperscaler_of(pool_type: str) -> str | None:
    """Return the cloud of a pool type (`gcp_cf-sa30` → `gcp`), or None if unknown."""
    cloud = pool_type.partition("_")[0]
    return cloud if cloud in HYPERSCALERS else None
