"""Declare as many resources of each kind as kinds.json says, as small as inputs.json has them."""

import json
from functools import cache
from importlib import import_module
from pathlib import Path
from string import Template
from typing import Any

from pulumi import ComponentResource, Output, ResourceOptions
from trivial import Provider, Trivial

HERE = Path(__file__).parent
WANTED = json.loads((HERE / "kinds.json").read_text(encoding="utf-8"))
INPUTS = json.loads((HERE / "inputs.json").read_text(encoding="utf-8"))
PROVIDERS: dict[str, dict[str, Any]] = {
    "kubernetes": {"enable_server_side_apply": True, "enable_secret_mutable": True},
    "gcp": {"project": "credfleet-dev", "access_token": "any"},
    "azure-native": {"subscription_id": "00000000-0000-4000-8000-000000000000"},
}
IDENTITY = "azure-native:managedidentity:UserAssignedIdentity"
firsts: dict[str, Any] = {}  # of each kind of a cloud's: what comes later may lie in one, or refer to it
namespaces: list[Any] = []


def sdk(package: str, *parts: str) -> Any:
    """Import a module of a package."""
    return import_module(".".join((f"pulumi_{package.replace('-', '_')}", *parts)))


@cache
def provider(package: str) -> Any:
    """Make the provider of a package."""
    return sdk(package).Provider(package, **PROVIDERS[package])


def declare(token: str, number: int) -> None:
    """Declare one resource of a kind."""
    package, where, kind = token.split(":")
    name, (module, _, version) = f"{token}-{number}", where.partition("/")
    if package == "pulumi-python":
        Trivial(Provider(), name, {"name": name})
    elif package == "kubernetes":
        given = inputs(token, number)
        if "kind" in given:  # an operator's, which has no class of its own
            made_by = sdk(package, "apiextensions").CustomResource
        else:
            made_by = getattr(sdk(package, module.partition(".")[0], version), kind)
        metadata: dict[str, Any] = {"name": f"floor-{number}"}
        if not kind.startswith(("Namespace", "Validating")):
            metadata["namespace"] = namespaces[number % WANTED["namespaces"]].metadata.name
        opts = ResourceOptions(provider=provider(package))
        made = made_by(name, metadata=metadata, **given, opts=opts)
        namespaces.extend([made] if kind == "Namespace" else [])
    elif package in PROVIDERS:
        before = [first for other, first in firsts.items() if other.startswith(package) and other != token]
        opts = ResourceOptions(provider=provider(package), depends_on=before)
        made = getattr(sdk(package, module), kind)(name, **inputs(token, number), opts=opts)
        firsts.setdefault(token, made)
    else:
        ComponentResource(token, name)


def inputs(token: str, number: int) -> dict[str, Any]:
    """Return what a resource of this number says beside its metadata."""
    given = json.loads(Template(json.dumps(INPUTS[token])).substitute(name=f"floor-{number}", number=number))
    secret = {key: Output.secret(given[key]) for key in ("data", "secret_data") if key in given}
    principal = {"principal_id": firsts[IDENTITY].principal_id} if "principal_type" in given else {}
    return {**given, **secret, **principal}


for each, count in WANTED["kinds"].items():
    for index in range(count):
        declare(each, index)
