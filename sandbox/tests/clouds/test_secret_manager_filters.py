"""Which secrets a filter passes, and that a filter that is not understood is refused."""

import pytest
from pulumi_sandbox.services.cloud.secret_manager.refusals import GcpRefusal
from pulumi_sandbox.services.cloud.secret_manager.secrets import read_filter

SECRET = {
    "name": "projects/1/secrets/hyperfleet-cls-1",
    "labels.team": "red",
    "labels.cluster-id": "cls-1",
    "annotations.owner": "Ada",
}


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("", True),
        ("labels.team=red", True),
        ("labels.team = red", True),
        ("labels.team=re", False),
        ("labels.team:re", True),
        ("labels.team!=red", False),
        ("labels.absent=x", False),
        ("labels.absent:*", False),
        ("labels.cluster-id:*", True),
        ('annotations.owner="Ada"', True),
        ("name:hyperfleet", True),
        ("name=hyperfleet-cls-1", True),
        ("name=hyperfleet-cls", False),
        ("NOT name:other", True),
        ("-labels.team=red", False),
        ("labels.team=red AND labels.cluster-id=cls-2", False),
        ("labels.team=red labels.cluster-id=cls-1", True),
        ("labels.team=blue OR labels.cluster-id=cls-1", True),
        ("labels.team=blue AND labels.team=red OR labels.cluster-id=cls-1", False),
    ],
)
def test_a_filter_passes_what_it_says(text: str, passes: bool):
    assert read_filter(text)(SECRET) is passes


@pytest.mark.parametrize("text", ["(labels.a=b)", "labels.a", "create_time>2020", "colour=red", "= x"])
def test_a_filter_that_is_not_understood_is_refused_rather_than_read_wrongly(text: str):
    with pytest.raises(GcpRefusal) as told:
        read_filter(text)
    assert told.value.status == "INVALID_ARGUMENT"
