"""Replication of an entry: location → Cloud KMS key, None for a Google-managed key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from components.pull_secret.settings import AUTOMATIC


def replication_in(replicas: Mapping[str, str | None]) -> Any:
    """Return the replication as the SDK requires it; AUTOMATIC: Google chooses the locations."""
    encrypted: dict[str, Any] = {
        place: {"customer_managed_encryption": {"kms_key_name": key}} if key else {}
        for place, key in replicas.items()
    }
    if AUTOMATIC in replicas:
        return {"auto": encrypted[AUTOMATIC]}
    managed: list[Any] = [{"location": place, **more} for place, more in encrypted.items()]
    return {"user_managed": {"replicas": managed}}


def replicas_of(entry: Any) -> Mapping[str, str | None]:
    """Return the present replication of an entry, as the SDK returns it.

    Declaring any other would delete the entry and recreate it elsewhere.
    """
    (kept,) = entry.replications
    places = {each.location: each for managed in kept.user_manageds for each in managed.replicas}
    encrypted = {place: each.customer_managed_encryptions for place, each in places.items()} or {
        AUTOMATIC: [key for auto in kept.autos for key in auto.customer_managed_encryptions]
    }
    return {place: next((key.kms_key_name for key in keys), None) for place, keys in encrypted.items()}


def list_misplaced(
    kept: Mapping[str, str | None], wanted: Mapping[str, str | None], entry: str
) -> Sequence[str]:
    """Return warnings that an entry keeps its replication although the configuration differs."""
    if kept.keys() != wanted.keys():
        where, there = (
            ", ".join(sorted(each)).replace(AUTOMATIC, "automatic replication") for each in (kept, wanted)
        )
        return [
            f"its entry stays in {where}, and locations asks for {there}: that is settled when an entry is"
            " made → set locations back; or delete the entry, refresh, and update"
        ]
    return [
        f"its entry is encrypted in {place} with {kept[place] or 'a key of Google'}, and kmsKeys asks for"
        f" {key} → gcloud secrets replication update {entry} --set-kms-key={key}"
        f"{'' if place == AUTOMATIC else f' --location={place}'}"
        for place, key in wanted.items()
        if key not in (None, kept[place])
    ]
