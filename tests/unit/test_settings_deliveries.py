"""Where a tenant's accounts are delivered to, as the configuration says it."""

from typing import Any

from components.projection.settings import Delivery
from tests.support.cases import tabled
from tests.support.stacks import problems, settings, stack


def delivered(deliver_to: Any) -> Delivery | None:
    values = stack(tenants__acme__accounts__aws__deliverTo=deliver_to)
    return settings(values).tenants["acme"].accounts["aws"].deliver_to


def test_a_copy_may_have_keys_of_its_own() -> None:
    copy = delivered({"name": "aws-account", "keys": {"AWS_ACCESS_KEY_ID": "accessKeyID"}})
    assert copy is not None
    assert copy.keys == {"AWS_ACCESS_KEY_ID": "accessKeyID"}


@tabled("deliver_to, place, problem")
def test_a_copy_nobody_could_use_is_told_with_its_place(deliver_to: Any, place: str, problem: str) -> None:
    (found,) = problems(stack(tenants__acme__accounts__aws__deliverTo=deliver_to))
    assert found.place == place
    assert problem in found.problem


def test_two_accounts_of_a_tenant_are_not_copied_over_each_other() -> None:
    account = {"type": "aws", "deliverTo": "copy"}
    values = stack(tenants__acme__accounts={"one": account, "two": account})
    (problem,) = problems(values)
    assert problem.place == "credfleet:tenants.acme.accounts.two.deliverTo"
    assert problem.problem.endswith("is also that of credfleet:tenants.acme.accounts.one.deliverTo")
