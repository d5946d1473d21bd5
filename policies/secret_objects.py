"""Policies for Secrets of any kind."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from pulumi_policy import EnforcementLevel, Secret
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE
from rule import SECRETS, UNKNOWN, Resource, resource_rule, reveal


def _as_data(secret: Resource) -> Mapping[str, Any] | None:
    """Return the Secret with `stringData` encoded into `data`, where it overrides the same keys."""
    texts, data = reveal(secret.inputs.get("stringData")), reveal(secret.inputs.get("data", {}))
    if not isinstance(texts, dict) or not isinstance(data, dict):
        return None
    if not all(isinstance(text, str) for text in texts.values()):
        return None
    encoded = {key: _encoded(text) for key, text in texts.items()}
    rest = {key: value for key, value in secret.inputs.items() if key != "stringData"}
    return {**rest, "data": Secret({**data, **encoded})}


def _encoded(text: str) -> str:
    return text if text == UNKNOWN_STRING_VALUE else base64.b64encode(text.encode()).decode()


@resource_rule(
    types=SECRETS,
    level=EnforcementLevel.REMEDIATE,
    description="A Secret must be declared with `data` only, so that a removed key leaves the cluster.",
    fix="give the values in base64 under data",
    remedy=_as_data,
)
def kubernetes_secret_data_only(secret: Resource) -> Iterator[str]:
    """Reject stringData: with server-side apply, a key removed from it stays in the Secret."""
    for key, text in secret.mapping("stringData").items():
        if text is not UNKNOWN and not isinstance(text, str):
            yield f"stringData.{key} is not a string"
    if "stringData" in secret.inputs and secret.is_known("stringData") and secret.is_known("data"):
        yield "stringData is used"


@resource_rule(
    types=SECRETS,
    description="A ServiceAccount must not have a token that never expires.",
    fix="let pods use projected tokens, and others ask for one with `kubectl create token`",
)
def kubernetes_secret_no_lasting_token(secret: Resource) -> Iterator[str]:
    """Reject tokens that never expire."""
    if secret.inputs.get("type") == "kubernetes.io/service-account-token":
        yield "type makes a token that never expires"
