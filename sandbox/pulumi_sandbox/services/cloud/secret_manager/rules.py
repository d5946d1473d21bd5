"""What Secret Manager accepts in a secret: labels, annotations, replication, aliases, masks, payloads."""

import re
import unicodedata
from collections.abc import Collection, Mapping
from typing import Final

from google.cloud.secretmanager_v1.types import Replication, Secret, SecretPayload

from pulumi_sandbox.services.cloud.secret_manager.checksum import crc32c
from pulumi_sandbox.services.cloud.secret_manager.names import checked_location
from pulumi_sandbox.services.cloud.secret_manager.refusals import GcpRefusal, invalid

PAYLOAD_LIMIT: Final = 64 * 1024
"""Bytes."""

CHANGEABLE: Final = frozenset({"labels", "annotations", "version_aliases"})
_FIXED: Final = frozenset({"name", "replication", "create_time"})
_NOT_KEPT: Final = (
    "topics",
    "expire_time",
    "ttl",
    "rotation",
    "version_destroy_ttl",
    "customer_managed_encryption",
    "tags",
)

_LABEL_KEY: Final = r"[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}"
_LABEL_VALUE: Final = r"[\p{Ll}\p{Lo}\p{N}_-]{0,63}"
_ANNOTATION: Final = re.compile(r"[a-z0-9A-Z](?:[a-z0-9A-Z._-]{0,61}[a-z0-9A-Z])?")
_ALIAS: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")


def check_new(secret: Secret, *, regional: bool) -> None:
    """Check a secret that is to be created, in one place or not; raises Refusal."""
    if not regional:
        _check_replication(secret.replication)
    elif "replication" in secret:
        raise invalid("A regional secret has no replication.")
    if secret.version_aliases:
        raise invalid("A secret without versions can have no version_aliases.")
    check_kept(secret)
    check_labels(secret.labels)
    check_annotations(secret.annotations)


def check_kept(secret: Secret) -> None:
    """Refuse what this stand-in would silently forget."""
    for field in _NOT_KEPT:
        if field in secret and getattr(secret, field):
            raise GcpRefusal("UNIMPLEMENTED", f"This stand-in does not keep {field}.")


def check_labels(labels: Mapping[str, str]) -> None:
    """Hold labels to Google's limits; raises Refusal."""
    if len(labels) > 64:
        raise invalid("A secret can have 64 labels at most.")
    for key, value in labels.items():
        if not (key and _is_label_text(key) and unicodedata.category(key[0]) in ("Ll", "Lo")):
            raise invalid(rf"Label key [{key}] must match {_LABEL_KEY}.")
        if not _is_label_text(value):
            raise invalid(rf"The value of label [{key}] must match {_LABEL_VALUE}.")


def check_annotations(annotations: Mapping[str, str]) -> None:
    """Hold annotations to Google's limits; raises Refusal."""
    for key in annotations:
        if not _ANNOTATION.fullmatch(key):
            raise invalid(f"Annotation key [{key}] must match {_ANNOTATION.pattern}.")
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) >= 16 * 1024:
        raise invalid("The annotations of a secret must have less than 16KiB.")


def check_aliases(aliases: Mapping[str, int], versions: Collection[int]) -> None:
    """Hold aliases to Google's limits, and to the versions there are; raises Refusal."""
    if len(aliases) > 50:
        raise invalid("A secret can have 50 version aliases at most.")
    for alias, version in aliases.items():
        if not _ALIAS.fullmatch(alias) or alias in ("latest", "NEW"):
            raise invalid(f"Version alias [{alias}] is not allowed.")
        if version not in versions:
            raise invalid(f"Version alias [{alias}] names version {version}, which does not exist.")


def changed_fields(mask: str) -> frozenset[str]:
    """Read an update mask, in camelCase or snake_case, into the fields to take over; raises Refusal."""
    snake = re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", mask)
    fields = frozenset(field for field in snake.split(",") if field)
    if not fields:
        raise invalid("The update_mask is required.")
    for field in sorted(fields - CHANGEABLE - {"etag"}):
        if field in _NOT_KEPT:
            raise GcpRefusal("UNIMPLEMENTED", f"This stand-in does not keep {field}.")
        reason = "is immutable" if field in _FIXED else "is no field of a secret"
        raise invalid(f"The update_mask names [{field}], which {reason}.")
    return fields & CHANGEABLE


def check_payload(payload: SecretPayload) -> None:
    """Check the bytes of a new version; raises Refusal, which tells nothing of them."""
    if not payload.data:
        raise invalid("Secret Payload cannot be empty.")
    if len(payload.data) > PAYLOAD_LIMIT:
        raise invalid(f"The payload is too large: {len(payload.data)} bytes, {PAYLOAD_LIMIT} are allowed.")
    if "data_crc32c" in payload and payload.data_crc32c != crc32c(payload.data):
        raise invalid("The checksum dataCrc32c does not match the payload that was received.")


def _check_replication(replication: Replication) -> None:
    managed = [replication.automatic] if "automatic" in replication else replication.user_managed.replicas
    if any("customer_managed_encryption" in each for each in managed):
        raise GcpRefusal("UNIMPLEMENTED", "This stand-in does not keep customer_managed_encryption.")
    if "automatic" in replication:
        return
    if "user_managed" not in replication:
        raise invalid("The replication of a secret is required: automatic or user_managed.")
    locations = [replica.location for replica in replication.user_managed.replicas]
    if not locations:
        raise invalid("A user_managed replication needs at least one replica.")
    for location in locations:
        checked_location(location)
        if locations.count(location) > 1:
            raise invalid(f"The replica location [{location}] is given twice.")


def _is_label_text(text: str) -> bool:
    return (
        len(text) <= 63
        and len(text.encode()) <= 128
        and all(c in "_-" or unicodedata.category(c) in ("Ll", "Lo", "Nd", "Nl", "No") for c in text)
    )
