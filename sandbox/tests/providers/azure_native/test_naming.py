"""Which names are made up for Azure resources, and when the engine's proposal goes before them."""

import uuid

import pytest
from pulumi_sandbox.providers.azure_native.kind import made_up
from pulumi_sandbox.providers.azure_native.resources import Autoname
from pulumi_sandbox.providers.contract import Autonaming


def test_a_made_up_name_depends_on_the_seed_alone():
    first, again, other = (made_up("random", "group", seed, None) for seed in (b"one", b"one", b"two"))
    assert first == again != other
    assert made_up("random", "group", b"", None) != made_up("random", "group", b"", None)


@pytest.mark.parametrize(
    ("form", "enforced", "taken"), [("random", False, True), ("uuid", False, False), ("uuid", True, True)]
)
def test_a_guid_gives_way_only_to_an_enforced_proposal(form: Autoname, enforced: bool, taken: bool):
    proposal = Autonaming(disabled=False, proposed="dev-x", enforced=enforced)
    name = made_up(form, "x", b"seed", proposal)
    assert (name == "dev-x") is taken
    if not taken:
        assert uuid.UUID(name)


def test_a_stack_without_autonaming_makes_up_none():
    assert made_up("uuid", "x", b"seed", Autonaming(disabled=True, proposed="")) is None
