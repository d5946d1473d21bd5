"""Which cloud the type of an account is of."""

import pytest

from components.labels import HYPERSCALERS, hyperscaler_of


@pytest.mark.parametrize("cloud", HYPERSCALERS)
def test_a_type_with_regions_behind_it_is_of_its_cloud(cloud: str) -> None:
    assert hyperscaler_of(cloud) == cloud
    assert hyperscaler_of(f"{cloud}_cf-sa30_ksa") == cloud


@pytest.mark.parametrize("name", ["", "awsome", "AWS", "_aws", "aws-eu"])
def test_any_other_type_is_of_no_cloud(name: str) -> None:
    assert hyperscaler_of(name) is None
