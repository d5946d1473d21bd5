"""What an earlier version left beside a state."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from pulumi_sandbox import files

from components.errors import CredfleetError
from operations.stack.steps_file import take_up_steps
from tests.operations.stack.test_state import STATE


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state of two, behind which a killed run noted two saves: c was made, then b changed and a gone."""
    path = tmp_path / ".pulumi" / "stacks" / "shop" / "dev.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(STATE))
    saves = (
        {"follows": digest(path.read_text())},
        {"new": {}, "order": [[0, 3]], "pending": []},
        {"new": {"3": {"urn": "b", "size": 2}}, "order": [[3, 4], [2, 3]], "pending": [[0, "deleting"]]},
    )
    steps_of(path).write_text("".join(f"{json.dumps(each)}\n" for each in saves))
    return path


def steps_of(state: Path) -> Path:
    return state.with_name("dev.json.steps")


def take_up(state: Path) -> dict[str, Any]:
    take_up_steps(state)
    return json.loads(state.read_text())


FOLDED = {
    **STATE["checkpoint"]["latest"],  # pyright: ignore[reportGeneralTypeIssues, reportIndexIssue, reportArgumentType, reportCallIssue]
    "resources": [{"urn": "b", "size": 2}, {"urn": "c"}],
    "pending_operations": [{"resource": {"urn": "a"}, "type": "deleting"}],
}


def test_what_an_earlier_version_left_is_in_the_state_once_and_the_former_state_is_kept(state: Path):
    before = state.read_text()
    for _ in range(2):
        assert take_up(state)["checkpoint"] == {"stack": "organization/shop/dev", "latest": FOLDED}
    assert not steps_of(state).exists()
    assert state.with_name("dev.json.bak").read_text() == before


def test_a_line_that_was_cut_off_anywhere_was_never_said(state: Path):
    steps, before = steps_of(state).read_bytes(), state.read_text()
    last = steps.rindex(b"\n", 0, -1) + 1
    for end in range(last, len(steps) - 1, 7):
        state.write_text(before)
        steps_of(state).write_bytes(steps[:end])
        assert [each["urn"] for each in take_up(state)["checkpoint"]["latest"]["resources"]] == [
            "a",
            "b",
            "c",
        ]


@pytest.mark.parametrize("writes", range(4))
def test_a_kill_at_any_write_loses_nothing(state: Path, monkeypatch: pytest.MonkeyPatch, writes: int):
    left, really = writes, files.replace

    def dying(path: Path, text: str) -> None:
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        really(path, text)

    with monkeypatch.context() as patched:
        patched.setattr(files, "replace", dying)
        patched.setattr(Path, "unlink", lambda *_, **__: dying(state.with_name("other"), ""))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        with pytest.raises(KeyboardInterrupt):
            take_up(state)
    assert take_up(state)["checkpoint"]["latest"] == FOLDED
    assert not steps_of(state).exists()


def test_steps_of_a_state_that_another_tool_has_changed_since_are_refused(state: Path):
    state.write_text(state.read_text().replace('"a"', '"x"'))
    with pytest.raises(CredfleetError) as refused:
        take_up(state)
    assert (refused.value.code, refused.value.place) == ("state-invalid", str(steps_of(state)))


@pytest.mark.parametrize("text", ["{}\n", "[]\n", "1\n", '{"follows":1}\n{"new":1}\n'])
def test_what_is_no_file_of_steps_is_refused(state: Path, text: str):
    steps_of(state).write_text(text)
    with pytest.raises(CredfleetError) as refused:
        take_up(state)
    assert refused.value.code in ("state-unreadable", "state-invalid")
    assert steps_of(state).exists()
