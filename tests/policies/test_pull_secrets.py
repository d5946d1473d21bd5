"""What a cluster's pull secret registers is what every environment's rules let through."""

import pytest

from tests.components.test_pull_secret import declared
from tests.support.policies import objections

NODES = {
    "projectNumber": "12",
    "project": "fleet-1",
    "namespace": "hyperfleet-system",
    "serviceAccount": "nodes",
}
ADAPTER = "pullsecret-manager@fleet-1.iam.gserviceaccount.com"


@pytest.mark.parametrize("preview", [True, False])
@pytest.mark.parametrize("environment", ["dev", "staging", "prod"])
def test_a_pull_secret_keeps_the_rules_of_every_environment(environment: str, preview: bool) -> None:
    recorder = declared(
        preview=preview,
        reader={"workload": NODES},
        adapter={"serviceAccount": ADAPTER},
        locations=["europe-west1", "europe-west4"],
        deletionProtection=True,
        hyperfleet={"apiUrl": "https://hyperfleet.example"},
    )
    assert objections(environment, recorder) == []


def test_an_entry_production_would_refuse_is_one_that_was_declared_otherwise() -> None:
    told = {rule for rule, _ in objections("prod", declared())}
    assert told == {"gcp-secret-replication", "gcp-secret-deletion-protection", "estate-regions"}
