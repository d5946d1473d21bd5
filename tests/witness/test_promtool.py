"""What Prometheus' own tool says of the alerts, of the dashboard's queries and of what the exporter prints.

It is built by `make prove WHAT=witness` only: it is a minute's work of a processor, and more.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

import pytest
import yaml

from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.snapshot import PoolSnapshot
from operations.pool.metrics import exposition, gauges_of, is_up
from tests.operations.pool.test_metrics import NOW, claimed
from tests.support.deployed import DEPLOY
from tests.support.go_program import built
from tests.support.proving import PROVES, tried
from tests.support.queries import dashboard, rule_groups

pytestmark = pytest.mark.built

SOURCE: Final = Path(__file__).parent / "promtool"
PACKAGE: Final = "github.com/prometheus/prometheus/cmd/promtool"
WITNESS: Final = "promtool of Prometheus: alerts, queries and metrics"

Promtool: TypeAlias = Callable[..., str]


@pytest.fixture(scope="module")
def promtool() -> Promtool:
    """Run it; what it says where it is content."""
    if not PROVES:
        pytest.skip("make prove WHAT=witness builds promtool")
    program = built(SOURCE, "promtool", package=PACKAGE, tags="remove_all_sd")

    def run(*arguments: str, given: str = "", cases: int = 1) -> str:
        tried(WITNESS, cases)
        answer = subprocess.run(
            [program, *arguments], input=given, capture_output=True, text=True, check=False
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout + answer.stderr

    return run


@pytest.fixture
def rule_file(tmp_path: Path) -> Path:
    file = tmp_path / "prometheus-rules.yaml"
    file.write_text(yaml.safe_dump(rule_groups()))
    return file


def test_the_rules_are_rules(promtool: Promtool, rule_file: Path) -> None:
    count = len(rule_groups()["groups"][0]["rules"])
    assert f"{count} rules found" in promtool("check", "rules", "--lint-fatal", str(rule_file), cases=count)


def test_each_alert_comes_when_it_is_due_and_not_before(promtool: Promtool, rule_file: Path) -> None:
    tests = DEPLOY / "prometheus-rules-test.yaml"
    tried = [each for test in yaml.safe_load(tests.read_text())["tests"] for each in test["alert_rule_test"]]
    alerts = {rule["alert"] for rule in rule_groups()["groups"][0]["rules"]}
    assert {each["alertname"] for each in tried if each["exp_alerts"]} == alerts
    shutil.copy(tests, rule_file.parent)
    assert "SUCCESS" in promtool("test", "rules", str(rule_file.with_name(tests.name)), cases=len(tried))


def test_the_queries_of_the_dashboard_are_promql(promtool: Promtool, tmp_path: Path) -> None:
    bare = [re.sub(r"\$__\w+", "5m", each) for each in dashboard().values() if "label_values" not in each]
    file = tmp_path / "queries.yaml"
    recorded = [{"record": f"q{number}", "expr": each} for number, each in enumerate(bare)]
    file.write_text(json.dumps({"groups": [{"name": "q", "rules": recorded}]}))
    promtool("check", "rules", "--lint=none", str(file), cases=len(bare))


def test_what_the_exporter_prints_is_as_prometheus_wants_it(promtool: Promtool) -> None:
    mine, record = claimed("aws-1", "acme")
    snapshot, settings = PoolSnapshot((mine,), (record,)), PoolConfigMap(partition_keys=("eu-access",))
    text = exposition([*gauges_of("p", snapshot, settings, NOW), is_up("p", up=True)])
    promtool("check", "metrics", given=text)
