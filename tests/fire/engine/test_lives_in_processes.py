"""Lives of a stack as in `test_lives.py`, with a process for all that has one when a person runs it.

The engine, the program, and the genuine host of its dynamic provider, which remembers what it made in files;
kills are SIGKILL, cancelling is SIGINT. Left out are things made by half, which a dynamic provider cannot
tell, what goes with another resource, what is looked up, and what depends on a component that it is in: the
SDK takes that for a circle.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter

from tests.fire.engine import one_operation
from tests.fire.engine.lives import (
    CANARY,
    PASSPHRASE,
    Ended,
    Kill,
    Life,
    Moment,
    Program,
    Spec,
    Stack,
    live,
    scratch,
    sound,
)
from tests.fire.engine.test_lives import lives
from tests.fire.engine.world import Thing
from tests.support.proving import PROVES, counted, tried

PROGRAM = Path(__file__).with_name("program")
ROOT = Path(__file__).parents[3]
A, B, C = (
    Spec("a", has_password=True),
    Spec("b", uses=("a",)),
    Spec("c", fixed_uses=("a",), depends_on=("b",)),
)


@dataclass
class ProcessStack(Stack):
    """A stack each of whose operations is a process."""

    def __post_init__(self) -> None:
        """Lay the program down."""
        shutil.copytree(PROGRAM, self.folder, dirs_exist_ok=True)
        super().__post_init__()
        self._things = self.folder / "world"
        self._things.mkdir()
        self._calls, self._retained = self._things / "calls", self.folder / "retained"
        self._retained.touch()

    def passes(self, moment: Moment) -> Ended | None:
        """Let a moment pass, and judge it; return how its operation ended, None when it was killed."""
        self.befalls(moment)
        self._lay_down(moment)
        seen = dict(self.store.disk().by_id)
        code = subprocess.run(
            [sys.executable, "-P", one_operation.__file__, str(self.folder)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
            timeout=120,
        ).returncode
        assert code == 0 or (moment.kill and code == -signal.SIGKILL), code
        ended: Ended | None = pickle.loads((self.folder / "ended").read_bytes()) if code == 0 else None
        ended = ended and replace(ended, told=tuple(map(_without_head, ended.told)))
        self.store.begin(None, {})
        self._look()
        retained = self._retained.read_text(encoding="utf-8").split()
        seen |= {id_: {"retainOnDelete": True} for id_ in retained}
        self.judge(moment, seen, ended or Ended(0, {}, (), frozenset()))
        return ended

    def _lay_down(self, moment: Moment) -> None:
        """Write for the processes what they are to do, and what there is."""
        declared = [
            asdict(each) | {"password": f"{CANARY}-{each.color}" if each.has_password else ""}
            for each in sound(moment.program)
        ]
        (self.folder / "program.json").write_text(json.dumps(declared), encoding="utf-8")
        (self.folder / "moment").write_bytes(pickle.dumps(moment))
        faults = {" ".join(call): fault for call, fault in moment.faults.items()}
        (self._things / "faults.json").write_text(json.dumps(faults), encoding="utf-8")
        self._calls.write_text("", encoding="utf-8")
        for each in self._things.glob("*.thing"):
            if each.stem not in self.world.things:
                each.unlink()
        for id_, thing in self.world.things.items():
            (self._things / f"{id_}.thing").write_text(json.dumps(thing.inputs), encoding="utf-8")

    def _look(self) -> None:
        """Learn what there is now, and which calls were made."""
        inputs = {
            each.stem: json.loads(each.read_text(encoding="utf-8")) for each in self._things.glob("*.thing")
        }
        self.world.things = {
            id_: Thing(id_, f"urn:pulumi:dev::test::t::{told['logical']}", told, 0)
            for id_, told in inputs.items()
        }
        lines = self._calls.read_text(encoding="utf-8").splitlines()
        self.world.calls = [(method, name) for method, name in map(str.split, lines)]


def _without_head(told: str) -> str:
    """Return what was told without the word for a crash, where the genuine host told of a refusal."""
    is_refusal = re.search(r"RuntimeError: (not now|there is no id-\w+)\n\Z", told)
    return told.removeprefix("Traceback ") if is_refusal else told


def _in_processes(life: Life) -> Life:
    """Return a life without what processes do not have."""

    def program(of: Program) -> Program:
        above: dict[str, tuple[str, ...]] = {}
        for each in of:
            above.setdefault(each.name, (each.parent, *above.get(each.parent, ())))
        return tuple(
            replace(
                each,
                deleted_with="",
                is_read=False,
                depends_on=tuple(name for name in each.depends_on if name not in above[each.name]),
            )
            for each in of
        )

    moments = (
        replace(
            each,
            program=program(each.program),
            faults={
                call: fault for call, fault in each.faults.items() if fault != "partial" and call[0] != "read"
            },
        )
        for each in life.moments
    )
    return Life(tuple(moments), program(life.last), life.is_refreshed)


@pytest.fixture(scope="module")
def crypter() -> PassphraseCrypter:
    return PassphraseCrypter.new(PASSPHRASE)


def _live(life: Life, crypter: PassphraseCrypter) -> None:
    folder = Path(tempfile.mkdtemp(prefix="credfleet-life-", dir=scratch()))
    try:
        live(life, ProcessStack(folder, crypter))
    finally:
        shutil.rmtree(folder)
    tried("lives of a stack in processes")


@pytest.mark.parametrize(
    "life",
    [
        pytest.param(
            Life(
                (
                    Moment("update", (A, B, C), {("create", "b"): "lost"}),
                    Moment(
                        "update",
                        (replace(A, fixed=1), B, C),
                        {("delete", "a"): "cancelled"},
                        kill=Kill(9, True),
                    ),
                ),
                (A, replace(B, color=1), C),
            ),
            id="the host dies, and the engine in a replacement",
        ),
    ],
)
def test_in_processes_nothing_is_lost_when(life: Life, crypter: PassphraseCrypter) -> None:
    _live(life, crypter)


@pytest.mark.skipif(not PROVES, reason="each life takes seconds: make fire")
@settings(
    max_examples=counted(1, 20),
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
@given(life=lives().map(_in_processes))
def test_a_life_in_processes_loses_nothing_makes_nothing_twice_and_converges(
    life: Life, crypter: PassphraseCrypter
) -> None:
    note(f"{life!r}")
    _live(life, crypter)
