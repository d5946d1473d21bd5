"""The components of credfleet, for a Pulumi program of one's own: `from credfleet import AccountClaim`.

Each is usable by itself, beside any other provider's resources; `Fleet` declares a whole stack from its
`credfleet:` configuration. A name is imported when it is first used: providers' processes import this package
too, and stay small.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from components.account_pool.component import AccountPool as AccountPool
    from components.account_pool.component import AccountPoolArgs as AccountPoolArgs
    from components.account_pool.component import Grantee as Grantee
    from components.account_pool.component import TenantAccounts as TenantAccounts
    from components.account_pool.component import TenantAccountsArgs as TenantAccountsArgs
    from components.account_pool.core.config_map import PoolConfigMap as PoolConfigMap
    from components.account_pool.core.declared import DeclaredMember as DeclaredMember
    from components.account_pool.core.model import ClaimRequest as ClaimRequest
    from components.account_pool.core.model import Policy as Policy
    from components.account_pool.provider import AccountClaim as AccountClaim
    from components.account_pool.provider import AccountClaimArgs as AccountClaimArgs
    from components.aso_credentials.component import AsoGlobalSettings as AsoGlobalSettings
    from components.aso_credentials.component import AsoNamespaceCredential as AsoNamespaceCredential
    from components.aso_credentials.component import AsoResourceCredential as AsoResourceCredential
    from components.aso_credentials.component import AsoSecretArgs as AsoSecretArgs
    from components.fleet import Fleet as Fleet
    from components.holding import current_holder as current_holder
    from components.holding import holder_here as holder_here
    from components.projection.provider import SecretProjection as SecretProjection
    from components.projection.provider import SecretProjectionArgs as SecretProjectionArgs
    from components.providers import kubernetes_provider as kubernetes_provider
    from components.stack_config.models import Cluster as Cluster
    from components.stack_config.stack import Settings as Settings

_MODULES: Final = {
    "account_pool.component": (
        "AccountPool",
        "AccountPoolArgs",
        "Grantee",
        "TenantAccounts",
        "TenantAccountsArgs",
    ),
    "account_pool.core.config_map": ("PoolConfigMap",),
    "account_pool.core.declared": ("DeclaredMember",),
    "account_pool.core.model": ("ClaimRequest", "Policy"),
    "account_pool.provider": ("AccountClaim", "AccountClaimArgs"),
    "aso_credentials.component": (
        "AsoGlobalSettings",
        "AsoNamespaceCredential",
        "AsoResourceCredential",
        "AsoSecretArgs",
    ),
    "fleet": ("Fleet",),
    "holding": ("current_holder", "holder_here"),
    "projection.provider": ("SecretProjection", "SecretProjectionArgs"),
    "providers": ("kubernetes_provider",),
    "stack_config.models": ("Cluster",),
    "stack_config.stack": ("Settings",),
}
_MODULE_OF: Final = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import components

    return getattr(import_module(f"{components.__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
