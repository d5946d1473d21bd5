"""A store's provider block becomes a provider of its own and back without loss; kinds register once."""

import base64
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from components.errors import CredfleetError, Problem
from components.secret_stores.convert import convert, embed
from components.secret_stores.kinds import KINDS
from components.secret_stores.model import ClusterProvider, Provider, ProviderSpec
from components.secret_stores.registry import RefRegister
from components.secret_stores.specs import FakeSpec
from tests.support.cases import cases, table
from tests.support.stores import PROVIDERS, cluster_store, store_in

TEXTS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)
NAMES = st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True)


def shape(optional: dict[str, st.SearchStrategy[Any]], **required: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


SECRET = shape({"namespace": NAMES, "key": NAMES}, name=NAMES)
ACCOUNT = shape({"namespace": NAMES, "audiences": st.lists(TEXTS, max_size=2)}, name=NAMES)
CA = shape({"namespace": NAMES, "key": NAMES}, name=NAMES, type=st.sampled_from(["Secret", "ConfigMap"]))
LOGIN = st.one_of(
    shape({}, token=shape({}, bearerToken=SECRET)),
    shape({}, cert=shape({}, clientCert=SECRET, clientKey=SECRET)),
    shape({}, serviceAccount=ACCOUNT),
)
SERVER = shape(
    {
        "url": TEXTS,
        "caBundle": TEXTS.map(lambda text: base64.b64encode(text.encode()).decode()),
        "caProvider": CA,
    }
)
BLOCKS = {
    "fake": shape(
        {"validationResult": st.integers(0, 2)},
        data=st.lists(shape({"version": TEXTS}, key=TEXTS, value=TEXTS), max_size=3),
    ),
    "kubernetes": st.one_of(
        shape({"server": SERVER, "auth": LOGIN, "remoteNamespace": NAMES}),
        shape({"server": SERVER, "authRef": SECRET}),
    ),
    "gcpsm": shape(
        {
            "projectID": TEXTS,
            "location": TEXTS,
            "secretVersionSelectionPolicy": st.sampled_from(["LatestOrFail", "LatestOrFetch"]),
            "auth": shape(
                {
                    "secretRef": shape({"secretAccessKeySecretRef": SECRET}),
                    "workloadIdentity": shape({"clusterProjectID": TEXTS}, serviceAccountRef=ACCOUNT),
                    "workloadIdentityFederation": shape(
                        {
                            "credConfig": shape({"namespace": NAMES}, name=NAMES, key=NAMES),
                            "awsSecurityCredentials": shape(
                                {},
                                awsCredentialsSecretRef=shape({"namespace": NAMES}, name=NAMES),
                                region=NAMES,
                            ),
                            "gcpServiceAccountEmail": NAMES.map(
                                lambda name: f"{name}@p.iam.gserviceaccount.com"
                            ),
                        }
                    ),
                }
            ),
        }
    ),
    "gitlab": shape(
        {"groupIDs": st.lists(TEXTS, max_size=2), "caProvider": CA},
        projectID=TEXTS,
        auth=shape({}, SecretRef=shape({}, accessToken=SECRET)),
    ),
    "azurekv": shape(
        {
            "authType": st.sampled_from(["ServicePrincipal", "ManagedIdentity", "WorkloadIdentity"]),
            "environmentType": st.sampled_from(["PublicCloud", "ChinaCloud"]),
            "authSecretRef": shape({"clientId": SECRET, "clientSecret": SECRET}),
            "serviceAccountRef": ACCOUNT,
            "useAzureSDK": st.booleans(),
        },
        vaultUrl=TEXTS,
    ),
}
EMBEDDED = st.sampled_from(sorted(BLOCKS)).flatmap(lambda key: BLOCKS[key].map(lambda spec: {key: spec}))
DEFAULTS = {
    "fake": {},
    "kubernetes": {"remoteNamespace": "default"},
    "gcpsm": {"secretVersionSelectionPolicy": "LatestOrFail"},
    "gitlab": {},
    "azurekv": {"authType": "ServicePrincipal", "environmentType": "PublicCloud", "useAzureSDK": False},
}
"""What an API server with ESO's CRDs adds to a block."""


def normalised(block: dict[str, Any]) -> dict[str, Any]:
    [(key, spec)] = deepcopy(block).items()
    if "server" in spec:
        spec["server"].setdefault("url", "kubernetes.default")
    return {key: {**DEFAULTS[key], **spec}}


@given(block=EMBEDDED, clusterwide=st.booleans())
def test_a_block_converted_and_embedded_again_is_the_block_with_its_defaults(
    block: dict[str, Any], clusterwide: bool
) -> None:
    store = cluster_store(provider=block) if clusterwide else store_in("a", provider=block)
    converted = convert(store, block, KINDS)
    assert not isinstance(converted, Problem)
    assert embed(converted, KINDS) == normalised(block)


def test_the_provider_is_named_after_its_store_and_belongs_where_the_store_does() -> None:
    block = {"fake": {"data": []}}
    own = convert(store_in("a", provider=block), block, KINDS)
    shared = convert(cluster_store(provider=block), block, KINDS)
    assert isinstance(own, Provider)
    assert isinstance(shared, ClusterProvider)
    assert (own.key.title, shared.key.title) == ("Fake/a/store", "Fake/store")
    assert (own.api_version, shared.api_version) == (PROVIDERS, f"cluster.{PROVIDERS}")


@cases("block", table(__file__, "test_a_block_that_eso_would_not_take_is_not_taken"))
def test_a_block_that_eso_would_not_take_is_not_taken(block: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        convert(cluster_store(provider=block), block, KINDS)


def test_a_converted_value_is_not_shown_by_its_representation() -> None:
    block = {"fake": {"data": [{"key": "x", "value": "s3cr3t"}]}}
    store = cluster_store(provider=block)
    assert "s3cr3t" not in repr(store) + repr(convert(store, block, KINDS))


@pytest.mark.parametrize("taken", [("Fake", "another"), ("Another", "fake")])
def test_a_kind_registered_twice_is_an_error_that_lists_the_known_ones(taken: tuple[str, str]) -> None:
    kinds = RefRegister()
    kinds.register("Fake", embedded="fake")(FakeSpec)
    name, key = taken
    with pytest.raises(CredfleetError, match=r"Fake \(providers\.credfleet\.io/v1alpha1\)") as caught:
        kinds.register(name, embedded=key)(ProviderSpec)
    assert caught.value.code == "duplicate-kind"


def test_a_kind_of_the_stacks_own_is_registered_by_one_decorator_for_both_groups() -> None:
    kinds = RefRegister()

    @kinds.register("Vault", embedded="vault", version="v1beta1")
    class VaultSpec(ProviderSpec):
        server: str

    for group in ("providers", "cluster.providers"):
        found = kinds.referred(f"{group}.credfleet.io/v1beta1", "Vault")
        assert not isinstance(found, Problem)
        assert found.spec is VaultSpec
    assert isinstance(kinds.referred(PROVIDERS, "Vault"), Problem)
