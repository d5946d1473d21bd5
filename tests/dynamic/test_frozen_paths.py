"""Where providers live is written into the state of stacks, so it never changes."""

from __future__ import annotations

import base64
import pickletools
import subprocess
import sys

import pytest
from pulumi.dynamic import ResourceProvider
from pulumi.dynamic.dynamic import serialize_provider

from components.account_pool.provider import AccountClaimProvider
from components.account_pool.roster import PoolRosterProvider
from components.account_pool.seal import PoolSealProvider
from components.aso_credentials.provider import SubscriptionPinProvider
from components.projection.provider import SecretProjectionProvider
from components.pull_secret.provider import (
    PullSecretRetentionProvider,
    PullSecretStatusProvider,
    PullSecretVerificationProvider,
)
from components.secret_stores.lookout import EsoLookoutProvider
from components.secret_stores.provider import SecretPushProvider, SecretReadProvider
from components.service_credentials.provider import ServiceMigrationProvider

FROZEN: dict[type[ResourceProvider], tuple[str, str]] = {
    AccountClaimProvider: ("components.account_pool.provider", "AccountClaimProvider"),
    PoolRosterProvider: ("components.account_pool.roster", "PoolRosterProvider"),
    SubscriptionPinProvider: ("components.aso_credentials.provider", "SubscriptionPinProvider"),
    SecretProjectionProvider: ("components.projection.provider", "SecretProjectionProvider"),
    ServiceMigrationProvider: ("components.service_credentials.provider", "ServiceMigrationProvider"),
    EsoLookoutProvider: ("components.secret_stores.lookout", "EsoLookoutProvider"),
    SecretReadProvider: ("components.secret_stores.provider", "SecretReadProvider"),
    SecretPushProvider: ("components.secret_stores.provider", "SecretPushProvider"),
    PullSecretRetentionProvider: ("components.pull_secret.provider", "PullSecretRetentionProvider"),
    PullSecretStatusProvider: ("components.pull_secret.provider", "PullSecretStatusProvider"),
    PullSecretVerificationProvider: ("components.pull_secret.provider", "PullSecretVerificationProvider"),
    PoolSealProvider: ("components.account_pool.seal", "PoolSealProvider"),
}
HEAVY = ("kubernetes", "pulumi_kubernetes", "jinja2", "rich", "pydantic")


@pytest.mark.parametrize("provider", FROZEN)
def test_state_names_a_provider_by_its_path_and_keeps_no_code(provider: type[ResourceProvider]) -> None:
    pickled = base64.b64decode(serialize_provider(provider()))
    texts = [argument for _, argument, _ in pickletools.genops(pickled) if isinstance(argument, str)]
    assert tuple(texts) == FROZEN[provider]


@pytest.mark.parametrize("module", [module for module, _ in FROZEN.values()])
def test_a_provider_is_loaded_without_anything_heavy(module: str) -> None:
    program = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"
