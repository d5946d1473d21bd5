"""No two parts of a stack write one Secret, whichever rooms they belong to."""

from itertools import combinations
from typing import Any

import pytest

from tests.support.cases import table
from tests.support.stacks import problems, stack

PRINCIPAL = {
    "subscriptionId": "00000000-0000-4000-8000-0000000000aa",
    "tenantId": "00000000-0000-4000-8000-0000000000bb",
    "clientId": "00000000-0000-4000-8000-0000000000cc",
}
AUTHS = '{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzd29yZA=="}}}'
FAKE = {"kind": "Fake", "spec": {"data": [{"key": "k", "value": "v"}]}}

WRITERS: dict[str, dict[str, Any]] = table(__file__, "WRITERS")
"""Place → what makes it write tenant-acme/wanted."""


@pytest.mark.parametrize("place", WRITERS)
def test_a_secret_that_is_written_once_is_no_problem(place: str) -> None:
    assert problems(stack(**WRITERS[place])) == ()


@pytest.mark.parametrize(("first", "second"), [*combinations(WRITERS, 2)])
def test_a_secret_that_two_rooms_would_write_is_refused(first: str, second: str) -> None:
    (problem,) = problems(stack(**WRITERS[first], **WRITERS[second]))

    assert problem.place == f"credfleet:{second}"
    assert problem.problem == f"its Secret tenant-acme/wanted is also that of credfleet:{first}"


def test_a_member_of_the_pool_is_written_by_the_pool_alone() -> None:
    named = {"named": {"aws-1": {"namespace": "account-pool", "podIdentity": PRINCIPAL}}}
    told = problems(stack(asoCredentials=named, cluster__existingNamespaces=["account-pool"]))

    assert "its Secret account-pool/aws-1 is also that of credfleet:accountPool.members.aws-1" in {
        one.problem for one in told
    }
