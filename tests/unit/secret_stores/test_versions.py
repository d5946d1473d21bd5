"""Several versions of a kind: which one serves a provider, with the selectors that its own version names."""

from typing import Any

import pytest

from components.errors import CredfleetError
from components.secret_stores.admission import Purpose, admit
from components.secret_stores.clients.client import Capability, ClientRequest, SecretsClient
from components.secret_stores.consumers import ExternalSecret
from components.secret_stores.eso import compile_read, compile_store
from components.secret_stores.model import ProviderSpec, SecretSelector
from components.secret_stores.registry import CLUSTER_GROUP, GROUP, Conversion, RefRegister
from components.secret_stores.rewriting import with_blocks, with_references
from tests.support.stores import cluster_store, kind, ref, selector, store_in


class Old(ProviderSpec):
    url: str
    token: SecretSelector


class Auth(ProviderSpec):
    token_ref: SecretSelector


class New(ProviderSpec):
    server: str
    auth: Auth


def newer(old: Old) -> dict[str, Any]:
    return {"server": old.url, "auth": {"tokenRef": old.token.model_dump(exclude_none=True)}}


def opened(_request: ClientRequest) -> SecretsClient:
    raise NotImplementedError


def register(*, first: str = "old", to: Conversion | None = None) -> RefRegister:
    kinds = RefRegister()

    def old() -> None:
        served = to or Conversion("v1", newer)
        kinds.register("Vault", embedded="vault", version="v1alpha1", served_as=served)(Old)

    def new() -> None:
        facts: Any = {"client": opened, "has_versions": False, "capabilities": Capability.READ_ONLY}
        kinds.register("Vault", embedded="vault", version="v1", **facts)(New)

    for each in (old, new) if first == "old" else (new, old):
        each()
    return kinds


URL = "https://vault.example"
OLD = {"url": URL, "token": selector(None, key="t")}


@pytest.mark.parametrize("first", ["old", "new"])
@pytest.mark.parametrize("namespace", ["a", None])
def test_a_provider_is_served_in_the_version_that_its_own_is_served_as(
    first: str, namespace: str | None
) -> None:
    kinds = register(first=first)
    old = kind("Vault", kinds=kinds).provider(namespace, "it", OLD)
    served = kinds.served(old)
    assert served.api_version == f"{GROUP if namespace else CLUSTER_GROUP}/v1"
    assert served.key[1:] == old.key[1:]
    assert served.spec == New.model_validate(newer(Old.model_validate(OLD)))
    assert kinds.served(served) == served


def test_the_caller_of_the_old_version_logs_in_through_a_client_of_the_new_one() -> None:
    kinds = register()
    old = kind("Vault", clusterwide=True, kinds=kinds).provider(None, "it", OLD)
    use = admit(cluster_store(providerRef=ref(old)), old, "a", {}, Purpose.READ, kinds=kinds)
    assert use.kind.version == "v1"
    spec = use.provider.spec
    assert isinstance(spec, New)
    assert (spec.server, spec.auth.token_ref.namespace) == (URL, "a")


def test_what_eso_is_given_is_the_version_that_serves() -> None:
    kinds = register()
    old = kind("Vault", kinds=kinds).provider("a", "it", OLD)
    store = store_in("a", providerRef=ref(old))
    manifest = compile_store(store, old, kinds)
    token = selector("a", key="t")
    assert manifest["spec"]["provider"] == {"vault": {"server": URL, "auth": {"tokenRef": token}}}
    data = {"k": {"key": "x", "version": "1"}}
    given = {"name": "r", "namespace": "a", "store": {"kind": "SecretStore", "name": "s"}, "target": "t"}
    read = ExternalSecret.model_validate({**given, "data": data})
    with pytest.raises(CredfleetError, match="has no versions"):
        compile_read(read, old, kinds)


def test_an_embedded_block_is_of_the_version_that_serves() -> None:
    kinds = register()
    apart = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Vault", "metadata": {"name": "it", "namespace": "a"}}
    reference = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Vault", "name": "it"}
    store = {
        "apiVersion": "external-secrets.io/v1",
        "kind": "SecretStore",
        "metadata": {"name": "it", "namespace": "a"},
        "spec": {"providerRef": reference},
    }
    (embedded,) = with_blocks([{**apart, "spec": OLD}, store], kinds)
    block = {"server": URL, "auth": {"tokenRef": selector(None, key="t")}}
    assert isinstance(embedded, dict)
    assert embedded["spec"] == {"provider": {"vault": block}}
    _, provider = with_references([embedded], kinds)
    assert provider == {**apart, "apiVersion": f"{GROUP}/v1", "spec": block}


@pytest.mark.parametrize(
    "to",
    [
        Conversion("v2", newer),
        Conversion("v1alpha1", newer),
        Conversion("v1", lambda old: {"server": old.url}),
    ],
    ids=["of-no-version", "of-itself", "without-what-is-required"],
)
def test_a_conversion_that_leads_nowhere_is_told_without_a_value(to: Conversion) -> None:
    kinds = register(to=to)
    with pytest.raises(CredfleetError) as refused:
        kinds.served(kind("Vault", kinds=kinds).provider("a", "it", OLD))
    assert (refused.value.code, refused.value.place) == ("no-conversion", "Vault/a/it")
    assert URL not in str(refused.value)


@pytest.mark.parametrize("version", ["v1alpha1", "v1", "v2"])
def test_two_versions_that_serve_themselves_cannot_both_be_embedded(version: str) -> None:
    kinds = register()
    with pytest.raises(CredfleetError, match="taken"):
        kinds.register("Vault", embedded="vault", version=version)(New)
