"""A store's provider block becomes a provider of its own and back without loss; kinds register once."""

from typing import Any

import pytest
from pydantic import ValidationError

from components.errors import CredfleetError, Problem
from components.secret_stores.convert import convert
from components.secret_stores.kinds import KINDS
from components.secret_stores.model import ClusterProvider, Provider, ProviderSpec
from components.secret_stores.registry import RefRegister
from components.secret_stores.specs import FakeSpec
from tests.support.cases import cases, table
from tests.support.stores import PROVIDERS, cluster_store, store_in


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
