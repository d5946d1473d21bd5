"""What Secret Manager accepts in a secret: labels, replication, masks, payloads."""

import re
from collections.abc import Mapping
from typing import Final

from google.cloud.secretmanager_v1.types import Replication, Secret, SecretPayload

from pulumi_sandbox.services.cloud.secret_manager.names import checked_location
from pulumi_sandbox.services.cloud.secret_manager.refusals import invalid, not_kept

PAYLOAD_LIMIT: Final = 64 * 1024
"""Bytes."""

CHANGEABLE: Final = frozenset({"labels", "annotations"})
_NOT_KEPT: Final = (
    "topics",
    "expire_time",
    "ttl",
    "rotation",
    "version_aliases",
    "version_destroy_ttl",
    "customer_managed_encryption",
    "tags",
)

_LABEL_KEY: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE: Final = re.compile(r"[a-z0-9_-]{0,63}")


def check_new(secret: Secret, *, regional: bool) -> None:
    """Check a secret that is to be created, in one place or not; raises Refusal."""
    if not regional:
        _check_replication(secret.replication)
    elif "replication" in secret:
        raise invalid("A regional secret has no replication.")
    for field in _NOT_KEPT:
        if field in secret and getattr(secret, field):
            raise not_kept(field)
    check_labels(secret.labels)


def check_labels(labels: Mapping[str, str]) -> None:
    """Hold labels to Google's limits, of letters to those of ASCII; raises Refusal."""
    if len(labels) > 64:
        raise invalid("A secret can have 64 labels at most.")
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key):
            raise invalid(f"Label key [{key}] must match {_LABEL_KEY.pattern}.")
        if not _LABEL_VALUE.fullmatch(value):
            raise invalid(f"The value of label [{key}] must match {_LABEL_VALUE.pattern}.")


def changed_fields(mask: str) -> frozenset[str]:
    """Read an update mask, in camelCase or snake_case, into the fields to take over; raises Refusal."""
    snake = re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", mask)
    fields = frozenset(field for field in snake.split(",") if field)
    if not fields:
        raise invalid("The update_mask is required.")
    for field in sorted(fields - CHANGEABLE - {"etag"}):
        if field in _NOT_KEPT:
            raise not_kept(field)
        raise invalid(f"The update_mask names [{field}], which no update can change.")
    return fields & CHANGEABLE


def check_payload(payload: SecretPayload) -> None:
    """Check the bytes of a new version; raises Refusal, which tells nothing of them."""
    if not payload.data:
        raise invalid("Secret Payload cannot be empty.")
    if len(payload.data) > PAYLOAD_LIMIT:
        raise invalid(f"The payload is too large: {len(payload.data)} bytes, {PAYLOAD_LIMIT} are allowed.")
    if "data_crc32c" in payload:
        raise not_kept("data_crc32c")


def _check_replication(replication: Replication) -> None:
    managed = [replication.automatic] if "automatic" in replication else replication.user_managed.replicas
    if any("customer_managed_encryption" in each for each in managed):
        raise not_kept("customer_managed_encryption")
    if not managed:
        raise invalid("The replication of a secret is required: automatic, or user_managed with replicas.")
    locations = [replica.location for replica in replication.user_managed.replicas]
    for location in locations:
        checked_location(location)
        if locations.count(location) > 1:
            raise invalid(f"The replica location [{location}] is given twice.")
