"""Names, ids and field managers of objects, made up or given."""

import re

import pytest
from pulumi_sandbox.protocol.values import UNKNOWN, Properties
from pulumi_sandbox.providers.kubernetes import objects

URN = "urn:pulumi:dev::fleet::kubernetes:core/v1:Secret::pool"


def test_an_object_without_a_name_gets_its_logical_name_with_eight_hex_digits():
    named = objects.make_up_name({"kind": "Secret"}, "pool", b"seed")
    assert re.fullmatch("pool-[0-9a-f]{8}", objects.name(named))
    assert objects.is_true(named, objects.AUTONAMED)


def test_a_made_up_name_depends_on_the_seed_alone():
    names = {objects.name(objects.make_up_name({}, "pool", seed)) for seed in (b"one", b"one", b"two")}
    assert len(names) == 2


def test_without_a_seed_two_made_up_names_differ():
    first, second = (objects.name(objects.make_up_name({}, "pool", b"")) for _ in range(2))
    assert first != second


@pytest.mark.parametrize("name", ["mine", UNKNOWN])
def test_a_name_the_program_gives_is_left_alone(name: str):
    inputs: Properties = {"metadata": {"name": name}}
    assert objects.make_up_name(inputs, "pool", b"seed") == inputs


def test_a_made_up_name_stays_until_the_program_gives_one():
    old = objects.make_up_name({}, "pool", b"seed")
    assert objects.keep_old_name({"kind": "Secret"}, old) == {"kind": "Secret", **old}
    assert objects.name(objects.keep_old_name({"metadata": {"name": "mine"}}, old)) == "mine"


def test_a_name_the_program_took_back_is_not_kept():
    assert objects.keep_old_name({}, {"metadata": {"name": "mine"}}) == {}


def test_annotations_that_are_not_known_yet_stay_unknown_beside_a_made_up_name():
    named = objects.make_up_name({"metadata": {"annotations": UNKNOWN}}, "pool", b"seed")
    assert objects.metadata(named)["annotations"] is UNKNOWN


def test_the_field_manager_is_the_same_in_every_run_and_another_for_another_resource():
    assert objects.manager_of(URN) == objects.manager_of(URN)
    assert re.fullmatch("pulumi-kubernetes-[0-9a-f]{8}", objects.manager_of(URN))
    assert objects.manager_of(URN) != objects.manager_of(URN + "2")


@pytest.mark.parametrize(("id_", "parts"), [("ns/name", ("ns", "name")), ("name", ("", "name"))])
def test_an_id_names_its_object_with_its_namespace_if_it_has_one(id_: str, parts: tuple[str, str]):
    namespace, name = parts
    assert objects.parse_id(id_) == parts
    assert objects.object_id({"metadata": {"name": name, "namespace": namespace}}) == id_
