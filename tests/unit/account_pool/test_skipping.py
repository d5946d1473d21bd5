"""Which errors of a pool skip a claim. That a provider goes by it is shown on a real API server."""

import pytest

from components import errors
from components.account_pool.forecast.skipping import SKIPS, skips


def test_every_error_of_a_pool_either_skips_a_claim_or_fails_the_update():
    known = {each for each in vars(errors).values() if isinstance(each, type)}
    of_pools = {each for each in known if issubclass(each, errors.PoolError)} - {errors.PoolError}
    assert of_pools == SKIPS.keys()


@pytest.mark.parametrize("refusal", SKIPS)
def test_only_what_costs_nobody_an_account_skips_and_nothing_skips_what_is_required(
    refusal: type[errors.PoolError],
):
    harmless = {errors.Exhausted, errors.LimitReached, errors.QuotaReached, errors.Withheld}
    assert skips(refusal, required=False) is (refusal in harmless)
    assert not skips(refusal, required=True)
