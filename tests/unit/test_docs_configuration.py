"""docs/configuration.md: its tables are what the settings read, and its example is a stack that works."""

import json
import re
from typing import Final

import pytest
import yaml

from components.stack_config.stack import SIZE_LIMIT
from tests.support.stacks import ROOT, as_passed, problems

PAGE: Final = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")


def test_every_key_has_a_meaning() -> None:
    rows = re.findall(r"^\| `(\S+)` \| .+ \| (.*) \|$", PAGE, re.MULTILINE)
    assert len(rows) > 200
    assert [key for key, meaning in rows if not meaning.strip()] == []


def test_the_size_limit_of_the_page_is_the_one_that_is_enforced() -> None:
    assert f"{SIZE_LIMIT // 1024} KiB ({SIZE_LIMIT:,} bytes)" in PAGE


@pytest.mark.parametrize("number", range(len(re.findall(r"```yaml\n", PAGE))))
def test_an_example_is_a_stack_with_nothing_wrong(number: int) -> None:
    text = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[number]
    config = {key.removeprefix("credfleet:"): value for key, value in yaml.safe_load(text)["config"].items()}
    config["credentials"] = {name: json.dumps({"key": "value"}) for name in config["credentials"]}

    assert problems(as_passed(config)) == ()
