"""Sixty edits of the stack files of dev, staging and prod: every room, each operation a branch may make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

Change = tuple[str, Any]


@dataclass(frozen=True)
class Plain:
    """The text of a credential that the edit brings; whoever applies it says how it is encrypted."""

    text: str


@dataclass(frozen=True)
class Renamed:
    """The former key of what stands at this one now."""

    former: str


GONE: Final = object()


@dataclass(frozen=True)
class Edit:
    """One edit. changes: path below `credfleet:`, or a whole key, steps between slashes → what is put there."""

    stack: str
    room: str
    operation: str
    what: str
    changes: tuple[Change, ...]

    @property
    def title(self) -> str:
        return f"{self.stack} {self.room} {self.operation}: {self.what}"

    def applied(self, document: Mapping[str, Any], encrypted: Callable[[str], str]) -> dict[str, Any]:
        """Return the edited stack file."""
        edited = deepcopy(dict(document))
        for path, value in self.changes:
            key, *inside = path.split("/")
            key = key if ":" in key else f"credfleet:{key}"
            *above, last = (key, *inside)
            holder = edited["config"]
            for step in above:
                holder = holder.setdefault(step, {})
            if value is GONE:
                del holder[last]
            elif isinstance(value, Renamed):
                holder[last] = holder.pop(value.former)
            elif isinstance(value, Plain):
                holder[last] = {"secure": encrypted(value.text)}
            else:
                holder[last] = deepcopy(value)
        return edited


AWS: Final = Plain('{"accessKeyID": "AKIA-ANOTHER", "secretAccessKey": "another-made-up-key"}')
AZURE: Final = Plain(
    '{"subscriptionID": "00000000-0000-4000-8000-0000000000d1", "tenantID":'
    ' "00000000-0000-4000-8000-0000000000d2", "clientID": "00000000-0000-4000-8000-0000000000d3",'
    ' "clientSecret": "another-made-up-secret"}'
)
PULL: Final = Plain('{"auths": {"quay.io": {"auth": "YW5vdGhlcjptYWRlLXVw"}}}')
SERVICE: Final = Plain('{"type": "postgresql", "host": "db", "port": 5432, "password": "another-made-up"}')
A, C, T, P, S, R = "accountPool", "credentials", "tenants", "pullSecrets", "services", "secretStores"
O = "asoCredentials"  # noqa: E741 - as short as the others
_NEW_MEMBER: Final = {"type": "aws", "accountId": "999999999999", "credentialsFrom": "aws-9"}
_CLUSTER: Final = {
    "name": "south",
    "generation": 1,
    "project": "credfleet-dev",
    "pullSecretFrom": "quay-pull",
}
_READY: Final = {"phase": "Ready", "adapters": {"validation": "True", "dns": "True", "placement": "True"}}

# fmt: off
# ruff: noqa: E501 - one edit a line
EDITS: Final = tuple(
    Edit(stack, room, operation, what, tuple(changes))
    for stack, room, operation, what, *changes in (
        ("dev", "pool", "add", "a member of a new credential", (f"{C}/aws-9", AWS), (f"{A}/members/aws-9", _NEW_MEMBER)),
        ("dev", "pool", "change", "the id of an account", (f"{A}/members/aws-2/accountId", "222222222299")),
        ("dev", "pool", "rotate", "a free account", (f"{C}/aws-2", AWS)),
        ("dev", "pool", "rotate", "an account with a copy", (f"{C}/aws-1", AWS)),
        ("dev", "pool", "rename", "a credential", (f"{C}/aws-two", Renamed("aws-2")), (f"{A}/members/aws-2/credentialsFrom", "aws-two")),
        ("dev", "pool", "rename", "a free member", (f"{A}/members/aws-two", Renamed("aws-2"))),
        ("dev", "pool", "remove", "a free member", (f"{A}/members/aws-2", GONE), (f"{C}/aws-2", GONE)),
        ("dev", "pool", "remove", "a member that is claimed", (f"{A}/members/aws-1", GONE)),
        ("dev", "pool", "move", "a free member to another partition", (f"{A}/members/aws-2/partition", {"eu-access": "true"})),
        ("dev", "pool", "break", "the name of a credential", (f"{A}/members/aws-2/credentialsFrom", "aws-none")),
        ("dev", "pool", "change", "who may claim", (f"{A}/claimers", [{"kind": "User", "name": "another"}])),
        ("dev", "claims", "add", "a tenant with a claim", (f"{T}/umbrella", {"namespace": "tenant-umbrella", "accounts": {"aws": {"type": "aws"}}})),
        ("dev", "claims", "add", "more than there is", (f"{T}/globex/accounts/aws", {"type": "aws"}), (f"{T}/globex/accounts/aws-b", {"type": "aws"})),
        ("dev", "claims", "change", "terms", (f"{T}/acme/accounts/azure/releasePolicy", "retain")),
        ("dev", "claims", "rename", "a slot", (f"{T}/initech/accounts/main", Renamed("aws"))),
        ("dev", "claims", "remove", "a claim", (f"{T}/initech/accounts/aws-eu", GONE)),
        ("dev", "claims", "move", "a tenant to another namespace", (f"{T}/initech/namespace", "tenant-initech-b")),
        ("dev", "claims", "break", "a namespace's name", (f"{T}/acme/namespace", "Tenant_Acme")),
        ("dev", "copies", "add", "a copy", (f"{T}/initech/accounts/aws/deliverTo", "aws-account")),
        ("dev", "copies", "remove", "a copy", (f"{T}/acme/accounts/aws", {"type": "aws"})),
        ("dev", "aso", "rotate", "a client secret", (f"{C}/team-a-sp", Plain("another-made-up-secret"))),
        ("dev", "aso", "change", "the operator's settings", (f"{O}/globalSettings", {"syncPeriod": "2h"})),
        ("dev", "aso", "add", "a right of an identity", (f"{O}/identities/billing/roles/more", {"role": "Reader", "scope": "/subscriptions/00000000-0000-4000-8000-0000000000aa/resourceGroups/rg-team-b"})),
        ("dev", "aso", "rename", "the Secret of a credential", (f"{O}/named/billing/secretName", "billing-b")),
        ("dev", "aso", "break", "a tenant's id", (f"{O}/namespaces/team-a/servicePrincipal/tenantId", "no-guid")),
        ("dev", "pull secrets", "rotate", "one of two clusters", (f"{C}/quay-pull", PULL)),
        ("dev", "pull secrets", "add", "a cluster", (f"{P}/clusters/cls-000000000004", {**_CLUSTER, **_READY})),
        ("dev", "pull secrets", "change", "a generation", (f"{P}/clusters/cls-000000000002/generation", 3)),
        ("dev", "pull secrets", "remove", "a cluster", (f"{P}/clusters/cls-000000000002", GONE)),
        ("dev", "pull secrets", "move", "a cluster to another pull secret", (f"{P}/clusters/cls-000000000002/pullSecretFrom", "quay-pull")),
        ("dev", "pull secrets", "break", "the project", (f"{P}/clusters/cls-000000000002/project", {"account": "acme/none"})),
        ("dev", "services", "rotate", "an instance with a push", (f"{C}/orders-db", SERVICE)),
        ("dev", "services", "add", "an instance of a new credential", (f"{C}/mail", SERVICE), (f"{S}/instances/mail", {"namespace": "tenant-acme", "credentialsFrom": "mail", "bindings": {"api": {}}})),
        ("dev", "services", "add", "a binding", (f"{S}/instances/orders-db/bindings/web", {})),
        ("dev", "services", "change", "how numbers are read", (f"{S}/instances/search/numbers", GONE)),
        ("dev", "services", "change", "what a binding is called", (f"{S}/instances/search/bindings/catalogue", {"displayName": "find"})),
        ("dev", "services", "rename", "a binding", (f"{S}/instances/orders-db/bindings/orders-web", Renamed("orders-api"))),
        ("dev", "services", "remove", "an instance", (f"{S}/instances/search", GONE)),
        ("dev", "services", "break", "the namespace", (f"{S}/instances/search/namespace", "nobodys")),
        ("dev", "stores", "add", "a read", (f"{R}/reads/more", {"namespace": "tenant-acme", "store": "shared", "data": {"key": {"account": "acme/aws", "key": "accessKeyID"}}})),
        ("dev", "stores", "change", "what a read takes", (f"{R}/reads/acme-key/data", {"key": {"account": "acme/aws", "key": "secretAccessKey"}})),
        ("dev", "stores", "change", "who may use a store", (f"{R}/stores/shared/conditions", [{"namespaces": ["tenant-acme", "tenant-globex", "team-a"]}])),
        ("dev", "stores", "rotate", "a login", (f"{C}/gitlab-token", Plain("glpat-another-made-up"))),
        ("dev", "stores", "remove", "a push", (f"{R}/pushes/orders-db", GONE)),
        ("dev", "stores", "break", "a store's name", (f"{R}/reads/acme-key/store", "none")),
        ("dev", "clouds", "rotate", "a provider's token", ("gcp:accessToken", Plain("another-made-up-token"))),
        ("staging", "pool", "rotate", "a claimed account", (f"{C}/azure-1", AZURE)),
        ("staging", "pool", "remove", "a protected member", (f"{A}/members/aws-2", GONE)),
        ("staging", "claims", "add", "a claim on the free account", (f"{T}/globex/accounts/aws", {"type": "aws"})),
        ("staging", "claims", "move", "a copy to another method", (f"{T}/globex/accounts/azure/deliverTo", "azure-account")),
        ("staging", "pull secrets", "rotate", "the only one", (f"{C}/quay-pull", PULL)),
        ("staging", "services", "add", "the room", (f"{C}/mail", SERVICE), (S, {"instances": {"mail": {"namespace": "tenant-acme", "credentialsFrom": "mail", "bindings": {"api": {}}}}})),
        ("staging", "stores", "add", "the room", (R, {"providers": {"google": {"kind": "GCPSM", "spec": {"projectID": "p"}}}, "stores": {"shared": {"cluster": True, "providerRef": "google"}}})),
        ("prod", "pool", "rotate", "a tenant's own account", (f"{C}/initech-azure", AZURE)),
        ("prod", "pool", "change", "the release policy", (f"{A}/releasePolicy", "clean")),
        ("prod", "claims", "remove", "a claim with its copy", (f"{T}/globex/accounts/aws", GONE)),
        ("prod", "claims", "rename", "a tenant", (f"{T}/acme-b", Renamed("acme"))),
        ("prod", "aso", "change", "the issuer", (f"{O}/operator/issuer", "https://oidc.example/another/")),
        ("prod", "pull secrets", "change", "the locations", (f"{P}/locations", ["europe-west1"])),
        ("prod", "stores", "remove", "a read by the operator", (f"{R}/reads/smtp", GONE)),
    )
)
