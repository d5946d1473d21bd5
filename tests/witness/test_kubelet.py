"""What a kubelet does with the operator's settings: a pod starts only with every key that is not optional.

The keys are those of the operator's own chart, in aso-chart.json with their source.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from components.aso_credentials.keys import GLOBAL_SETTINGS
from components.aso_credentials.settings import GlobalSettings, Operator
from tests.witness.conftest import COUNTS

CHART: Final = json.loads((Path(__file__).parent / "aso-chart.json").read_text(encoding="utf-8"))
VERSIONS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = CHART["versions"]
IDS: Final = dict.fromkeys(("subscriptionId", "tenantId", "clientId"), "00000000-0000-4000-8000-0000000000aa")
CREDENTIALS: Final[Mapping[str, dict[str, Any] | None]] = {
    "none": None,
    "secret": {"servicePrincipal": {**IDS, "secretFrom": "x"}, "additionalTenants": [IDS["tenantId"]]},
    "certificate": {"servicePrincipal": {**IDS, "certificateFrom": "x", "passwordFrom": "y"}},
    "token": {"workloadIdentity": IDS},
    "pod": {"podIdentity": IDS},
    "another cloud": {
        "podIdentity": IDS,
        "cloud": dict.fromkeys(
            ("authorityHost", "resourceManagerEndpoint", "resourceManagerAudience"), "https://x"
        ),
    },
}
EVERYTHING: Final[Mapping[str, Any]] = {
    "syncPeriod": "1h",
    "operatorMode": "watchers",
    "targetNamespaces": ["team-a"],
    "defaultReconcilePolicy": "manage",
    "maxConcurrentReconciles": 1,
    "rateLimit": {"qps": 1, "bucketSize": 1},
    "userAgentSuffix": "x",
}


def emitted(credential: dict[str, Any] | None, further: Mapping[str, Any]) -> Mapping[str, bytes]:
    settings = GlobalSettings.model_validate({**further, "credential": credential})
    operator = Operator.model_validate({"workloadIdentityMode": "strict", "multiEnv": True})
    own = settings.credential
    return settings.data(operator, own.data([b"s"] * len(own.sources)) if own else {})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("further", [{}, EVERYTHING], ids=["nothing further", "everything"])
@pytest.mark.parametrize("credential", CREDENTIALS)
def test_the_pods_of_the_operators_chart_start_with_the_settings(
    credential: str, further: Mapping[str, Any], version: str
) -> None:
    COUNTS["a kubelet, by the operator's chart: settings that its pods start with"] += 1
    data = emitted(CREDENTIALS[credential], further)
    assert CHART["secret"] == GLOBAL_SETTINGS
    assert VERSIONS[version]["required"]
    assert {*VERSIONS[version]["required"]} <= data.keys()


@pytest.mark.parametrize("credential", CREDENTIALS)
def test_the_newest_chart_hands_every_key_of_the_settings_to_the_operator(credential: str) -> None:
    newest = VERSIONS[max(VERSIONS, key=lambda version: [*map(int, version.split("."))])]
    read = {*newest["required"], *newest["optional"]}
    assert emitted(CREDENTIALS[credential], EVERYTHING).keys() <= read
