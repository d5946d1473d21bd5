"""Whatever is edited between two updates, the second one runs as edited, though a zygote forks its processes.

Not here: that installed packages are read anew once they changed (tests/services/test_zygotes.py).
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.zygotes.address import SERVER

from sandbox.tests.support.engine_stack import Stack
from sandbox.tests.support.recording_provider import RecordingProvider
from sandbox.tests.support.zygotes import zygote_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")

PROGRAM = Path(__file__).parent / "programs" / "edited"
FILES = {
    "program": "__main__.py",
    "shop": "shop/__main__.py",
    "pack": "pack/__main__.py",
    "limits": "pack/limits.py",
}
FORKED = {"program", "acting", "pack"}
"""What is told by a process of its own, but for the package's, which is a folder and imports for itself."""


class Edited:
    """A stack of which each part tells its word; `last` is what the latest update was told."""

    def __init__(self, stack: Stack, environment: pytest.MonkeyPatch) -> None:
        self.environment = environment
        self._stack = stack
        self.write("configuration", "first")
        self.write("variable", "first")
        environment.setenv("WORD", "first")
        self.last = self.told()[0]

    def write(self, part: str, word: str) -> None:
        """Change the word of one part, in its file or wherever it stands."""
        if part == "configuration":
            self._stack.configure(f"  test:word: {word}\n")
        elif part == "variable":
            self.environment.setenv("PULUMI_WORD", word)
        else:
            file = self._stack.directory / FILES.get(part, f"{part}.py")
            text = file.read_text()
            assert text.count('WORD = "first"') == 1
            file.write_text(text.replace('WORD = "first"', f"WORD = {word!r}"))

    def told(self) -> tuple[dict[str, str], set[str]]:
        """Update; return the word of each part, and which of them a forked process told."""
        up = self._stack.up(policy_packs=(self._stack.directory / "pack",))
        assert up.code == 0, up.messages
        judged = dict(each.message.splitlines()[-1].split("=", 1) for each in up.result.policy)
        told = {part: str(word).partition(" by ") for part, word in (up.result.outputs | judged).items()}
        return (
            {part: word for part, (word, _, _) in told.items()},
            {part for part, (_, _, parent) in told.items() if SERVER.name in parent},
        )


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory, crypter: PassphraseCrypter) -> Generator[Edited]:
    """The stack after its first update."""
    folder = tmp_path_factory.mktemp("edited")
    stack = Stack.genuine(folder / "project", crypter, RecordingProvider(), PROGRAM)
    with (folder / "project" / "Pulumi.yaml").open("a") as description:
        description.write("packages:\n  shop: ./shop\n")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("WORD", "first")
        with zygote_in(folder / "zygotes"):
            yield Edited(stack, environment)


@pytest.mark.parametrize(
    "part",
    [
        pytest.param("program", id="the program"),
        pytest.param("room", id="a module of a component"),
        pytest.param("acting", id="the module of a dynamic provider"),
        pytest.param("shop", id="the provider of a package"),
        pytest.param("pack", id="a policy"),
        pytest.param("limits", id="a module of a policy"),
        pytest.param("configuration", id="the configuration of the stack"),
        pytest.param("variable", id="a variable of the environment"),
    ],
)
def test_the_next_update_takes_up_what_was_edited_and_its_processes_are_forked(edited: Edited, part: str):
    edited.write(part, "edited since")
    before = edited.last
    edited.last, forked = edited.told()
    assert edited.last == {**before, part: "edited since"}
    assert forked == FORKED


def test_the_next_update_takes_up_a_variable_that_modules_may_read_while_they_are_imported(
    edited: Edited, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("WORD", "edited since")
    assert edited.told() == ({**edited.last, "shell": "edited since"}, set())
