"""The pin of a credential to its subscription, in the genuine host."""

from collections.abc import Generator

import pytest

from components.aso_credentials.provider import SubscriptionPinProvider
from tests.support.cases import tabled
from tests.support.dynamic_host import Host, Properties, Provider, dynamic_host, provided

SUB = "00000000-0000-4000-8000-0000000000aa"
OTHER = "00000000-0000-4000-8000-0000000000ff"
PLACE = "credfleet:asoCredentials.namespaces.team-a"


@pytest.fixture(scope="module")
def host() -> Generator[Host]:
    with dynamic_host({}) as host:
        yield host


provider = provided(SubscriptionPinProvider)


def pin(**more: object) -> Properties:
    return {
        "secret": "team-a/aso-credential",
        "subscriptionId": SUB,
        "allowChange": False,
        "place": PLACE,
        **more,
    }


def test_another_subscription_is_refused_in_a_preview_with_place_and_fix(provider: Provider) -> None:
    (reason,) = provider.refusals(pin(subscriptionId=OTHER), pin())
    problem, fix = reason.splitlines()
    assert problem.startswith(f"{PLACE}: Secret team-a/aso-credential opens subscription {SUB}; with {OTHER}")
    assert "allowSubscriptionChange: true" in fix


def test_another_subscription_passes_when_it_is_allowed_and_is_remembered_from_then_on(
    provider: Provider,
) -> None:
    made = provider.create(pin())
    moved = provider.update(made, pin(subscriptionId=OTHER, allowChange=True))
    assert moved.outputs == pin(subscriptionId=OTHER, allowChange=True)
    assert provider.refusals(pin(subscriptionId=OTHER), moved.inputs) == []
    assert len(provider.refusals(pin(), moved.inputs)) == 1


@tabled("news")
def test_what_strands_no_resource_passes(provider: Provider, news: Properties) -> None:
    assert provider.refusals(news, pin()) == []
