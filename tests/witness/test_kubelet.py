"""What a kubelet does with the operator's settings: a pod starts only with every key that is not optional.

The keys are those of the operator's own chart, in aso-chart.json with their source;
`make prove WHAT=witness` fetches each version named there and compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from components.aso_credentials.keys import GLOBAL_SETTINGS
from components.aso_credentials.operator_settings import GlobalSettings, Operator
from tests.support.cases import table
from tests.support.proving import PROVES, tried
from tests.witness.chart import CHART, entry, keys_of
from tests.witness.published import published

VERSIONS: Final[Mapping[str, Mapping[str, Any]]] = CHART["versions"]
IDS: Final = dict.fromkeys(("subscriptionId", "tenantId", "clientId"), "00000000-0000-4000-8000-0000000000aa")
CREDENTIALS: Final[Mapping[str, dict[str, Any] | None]] = table(__file__, "CREDENTIALS")
EVERYTHING: Final[Mapping[str, Any]] = table(__file__, "EVERYTHING")


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
    tried("a kubelet, by the operator's chart: settings that its pods start with")
    data = emitted(CREDENTIALS[credential], further)
    assert CHART["secret"] == GLOBAL_SETTINGS
    assert VERSIONS[version]["required"]
    assert {*VERSIONS[version]["required"]} <= data.keys()


@pytest.mark.parametrize("credential", CREDENTIALS)
def test_the_newest_chart_hands_every_key_of_the_settings_to_the_operator(credential: str) -> None:
    newest = VERSIONS[max(VERSIONS, key=lambda version: [*map(int, version.split("."))])]
    read = {*newest["required"], *newest["optional"]}
    assert emitted(CREDENTIALS[credential], EVERYTHING).keys() <= read


def test_keys_are_read_from_a_template_as_the_chart_writes_it() -> None:
    ours = f"              name: {CHART['secret']}\n"
    template = "".join(
        f"        - name: {key}\n          valueFrom:\n            secretKeyRef:\n{lines}"
        for key, lines in {
            "A": f"              key: A\n{ours}",
            "B": f"{ours}              key: B\n              optional: true\n",
            "C": "              key: C\n              name: another\n",
        }.items()
    )
    assert keys_of(f"{template}        image: x\n") == {"required": ["A"], "optional": ["B"]}


@pytest.mark.built
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.skipif(not PROVES, reason="make prove WHAT=witness fetches what was published")
def test_the_kept_keys_are_those_of_the_published_chart(version: str) -> None:
    kept = VERSIONS[version]
    url = f"https://raw.githubusercontent.com/{CHART['repository']}/{kept['commit']}/{kept['file']}"
    assert entry(version, kept["commit"], published(url, kept["sha256"])) == kept
