"""docs/aso-credentials.md: its example is a stack that works, and its refusal is the one that is told."""

import json
import re
from pathlib import Path
from typing import Any, Final

import yaml

from components.aso_credentials.resolution import Reason
from tests.support.aso import manifest
from tests.support.stacks import ROOT, as_passed, problems

PAGE: Final = (ROOT / "docs" / "aso-credentials.md").read_text(encoding="utf-8")


def example() -> dict[str, Any]:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    config = yaml.safe_load(text)["config"]
    sections = {key.removeprefix("credfleet:"): value for key, value in config.items()}
    sections["credentials"] = {name: "any" for name in sections["credentials"]}
    del sections["azure-native:subscriptionId"]
    return sections


def write(root: Path, name: str, **manifest: Any) -> None:
    (root / "manifests").mkdir(exist_ok=True)
    (root / "manifests" / name).write_text(json.dumps(manifest), encoding="utf-8")


def test_the_example_is_a_stack_with_nothing_wrong(tmp_path: Path) -> None:
    write(tmp_path, "billing.yaml", **manifest("team-b", "billing"))

    assert problems(as_passed(example()), root=tmp_path) == ()


def test_the_refusal_of_the_page_is_what_a_preview_says(tmp_path: Path) -> None:
    sections = example()
    sections["tenants"]["team-c"] = {"namespace": "team-c"}
    sections["asoCredentials"]["resources"] = {"shop": {"file": "manifests/shop.yaml"}}
    write(tmp_path, "shop.yaml", **manifest("team-c", "shop"))

    (problem,) = problems(as_passed(sections), root=tmp_path)
    assert f"✗ {problem.place}: {problem.problem}\n→ {problem.fix}" in PAGE


def test_every_reason_of_a_refusal_is_in_the_table_of_troubles() -> None:
    (_, table) = PAGE.split("## Troubleshooting")

    assert [reason for reason in Reason if f"`{reason}`" not in table] == []
