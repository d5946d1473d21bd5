"""The queries of deploy/: what its rules and its dashboard ask Prometheus, and which series they name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from tests.support.deployed import DEPLOY

_SELECTOR: Final = re.compile(r"\b(credfleet_\w+)(?:\{([^}]*)\})?")
_MATCHER: Final = re.compile(r'(\w+)\s*(=~|!=|!~|=)\s*"([^"]*)"')
_GROUPED: Final = re.compile(r"\bby \(([^)]*)\)")


def dashboard() -> dict[str, str]:
    """Return the queries of the dashboard, by panel and letter."""
    document: dict[str, Any] = json.loads((DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8"))
    asked = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in document["panels"]
        for target in panel["targets"]
    }
    variables = document["templating"]["list"]
    return asked | {each["name"]: each["query"]["query"] for each in variables if each["type"] == "query"}


def rule_groups() -> dict[str, Any]:
    """Return the rule file that the manifest holds."""
    return yaml.safe_load((DEPLOY / "prometheus-rules.yaml").read_text(encoding="utf-8"))["spec"]


def rules() -> dict[str, str]:
    """Return the queries of the alerts."""
    return {rule["alert"]: rule["expr"] for group in rule_groups()["groups"] for rule in group["rules"]}


def selectors(query: str) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Yield each metric that a query names, and how its labels are to match."""
    for name, matchers in _SELECTOR.findall(query):
        yield name, _MATCHER.findall(matchers)


def grouped(query: str) -> set[str]:
    """Return the labels that a query keeps."""
    return {label.strip() for labels in _GROUPED.findall(query) for label in labels.split(",")}
