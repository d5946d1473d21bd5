"""JSON that anybody may have written: how deep it may be, whatever its strings hold. Not how YAML is read."""

import json

import pytest
from pulumi_sandbox.documents import DEEPEST_JSON, TooDeep, read_json

DEEPEST = f"{'[' * DEEPEST_JSON}{']' * DEEPEST_JSON}"


@pytest.mark.parametrize(
    "text",
    [DEEPEST, DEEPEST.encode("utf-16"), f"[{','.join(['{}'] * 1000)}]", json.dumps("[" * 5000 + '"{')],
    ids=["deepest", "in-another-encoding", "wide", "brackets-in-a-string"],
)
def test_what_is_not_too_deep_is_read_as_json_has_it(text: str | bytes) -> None:
    assert read_json(text) == json.loads(text)


@pytest.mark.parametrize(
    "text", [f"[{DEEPEST}]", "[" * 100_000, '{"a":' * 100_000, f'["\\"]", [{DEEPEST}]]'.encode()]
)
def test_what_is_too_deep_is_refused_before_it_is_followed(text: str | bytes) -> None:
    with pytest.raises(TooDeep):
        read_json(text)


@pytest.mark.parametrize("text", ["", "{", "1" * 5000, '"' + '\\"' * 100_000, b"\xff"])
def test_what_is_no_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_json(text)
