"""A stack with every kind of ASO credential, small and whole, and the manifests it declares."""

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from tests.support.cases import table
from tests.support.stacks import SMALL, as_passed

SUB: Final = "00000000-0000-4000-8000-0000000000aa"
OTHER_SUB: Final = "00000000-0000-4000-8000-0000000000ff"
TENANT: Final = "00000000-0000-4000-8000-0000000000bb"
CLIENT: Final = "00000000-0000-4000-8000-0000000000cc"
GROUP_SCOPE: Final = f"/subscriptions/{SUB}/resourceGroups/rg-team-b"
ISSUER: Final = "https://oidc.example/dev/"
CANARY: Final = "canary-9d2e"
AZURE: Final = {"subscriptionID": SUB, "tenantID": TENANT, "clientID": CLIENT, "clientSecret": CANARY}

SECTION: Final[Mapping[str, Any]] = table(__file__, "SECTION")


def manifest(
    namespace: str | None, name: str, kind: str = "ResourceGroup", **metadata: Any
) -> dict[str, Any]:
    """Draw a resource of ASO."""
    group = "storage" if kind == "StorageAccount" else "resources"
    version = "v1api20230101" if kind == "StorageAccount" else "v1api20200601"
    placed = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
    return {
        "apiVersion": f"{group}.azure.com/{version}",
        "kind": kind,
        "metadata": {**placed, **metadata},
        "spec": {"location": "westeurope"},
    }


FILES: Final[Mapping[str, Mapping[str, Any]]] = {
    "team-a.yaml": manifest("team-a", "shop"),
    "team-b.yaml": manifest("team-b", "search", "StorageAccount"),
    "billing.yaml": manifest("team-a", "billing"),
    "acme.yaml": manifest("tenant-acme", "acme"),
}


def put_files(root: Path, **changes: Any) -> Path:
    """Write the manifests; a file's name without .yaml → its documents instead, or text."""
    for name, default in FILES.items():
        given = changes.get(name.removesuffix(".yaml").replace("-", "_"), [default])
        text = given if isinstance(given, str) else "\n---\n".join(map(json.dumps, given))
        (root / name).write_text(text, encoding="utf-8")
    return root


def aso_stack(**changes: Any) -> dict[str, str]:
    """Return the stack; a path below asoCredentials with `__` for the dots → a value; None removes it."""
    sections = deepcopy(dict(SMALL))
    sections["cluster"]["existingNamespaces"] = ["azureserviceoperator-system"]
    sections["credentials"] |= {
        "azure-1": json.dumps(AZURE),
        "team-a-sp": json.dumps({"clientSecret": CANARY}),
    }
    sections["accountPool"]["members"]["azure-1"] = {
        "type": "azure",
        "accountId": "00000000-0000-4000-8000-000000000002",
        "credentialsFrom": "azure-1",
    }
    sections["tenants"] |= {"team-a": {"namespace": "team-a"}, "team-b": {"namespace": "team-b"}}
    sections["tenants"]["acme"]["accounts"]["azure"] = {
        "type": "azure",
        "deliverTo": {"asoCredential": "servicePrincipalSecret"},
    }
    sections["asoCredentials"] = deepcopy(dict(SECTION))
    for path, value in changes.items():
        *holders, last = path.split("__")
        holder = sections if holders and holders[0] in sections else sections["asoCredentials"]
        for step in holders:
            holder = holder.setdefault(step, {})
        if value is None:
            del holder[last]
        else:
            holder[last] = value
    return {**as_passed(sections), "azure-native:subscriptionId": SUB}
