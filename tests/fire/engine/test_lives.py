"""Random lives of a stack: whatever happens to it, nothing is lost, nothing is made twice, and it converges.

A program of up to five resources, operations one after the other, a provider that refuses, does half, does
all and cannot say so, a user who cancels, a kill at any write. A life that fails is made small, and printed
as a call that plays it again. Those with a wire and processes: `test_lives_in_processes.py`.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter

from tests.fire.engine.lives import (
    PASSPHRASE,
    Chosen,
    Kill,
    Life,
    Moment,
    Program,
    Spec,
    Stack,
    live,
    scratch,
)
from tests.support.proving import PROVES, SEARCHES, counted, tried

PARTS = counted(1, 10)
LIVES = counted(80, 5_000, 10_000)
NAMES = tuple("abcde")

MARKS: dict[str, dict[str, object]] = {
    "password": {"has_password": True},
    "component": {"is_component": True},
    "read": {"is_read": True},
    "protected": {"is_protected": True},
    "retained": {"is_retained": True},
    "exclusive": {"is_exclusive": True},
    "deleted first": {"delete_first": True},
    "created first": {"delete_first": False},
    "color ignored": {"ignores_color": True},
    "color replaces": {"replaces_on_color": True},
    "one trigger": {"trigger": 1},
    "another trigger": {"trigger": 2},
    "served by one": {"served": 1},
    "served by another": {"served": 2},
}
MANY = ("uses", "fixed_uses", "depends_on")
ONE = ("parent", "deleted_with", "replace_with", "former")

_seldom = st.sampled_from((False, False, False, True))
_a_name = st.sampled_from(("", "", "", *NAMES))
_hardly_a_name = st.sampled_from(("",) * 15 + NAMES)
_links = st.lists(st.tuples(st.sampled_from(MANY + ONE), st.sampled_from(NAMES)), max_size=3)
_marks = st.lists(st.sampled_from(sorted(MARKS)), max_size=2)


def specs(name: str) -> st.SearchStrategy[Spec]:
    def spec(values: int, links: list[tuple[str, str]], marks: list[str]) -> Spec:
        told: dict[str, Any] = {"color": values % 3, "fixed": values // 3}
        for mark in marks:
            told |= MARKS[mark]
        for role, to in links:
            told[role] = (*told.get(role, ()), to) if role in MANY else to
        return Spec(name, **told)

    return st.builds(spec, st.integers(0, 5), _links, _marks)


programs: st.SearchStrategy[Program] = st.tuples(*(st.one_of(st.none(), specs(name)) for name in NAMES)).map(
    lambda drawn: tuple(each for each in drawn if each is not None)
)

moments = st.builds(
    Moment,
    operation=st.sampled_from(("update", "update", "update", "preview", "refresh", "destroy")),
    faults=st.dictionaries(
        st.tuples(st.sampled_from(("create", "update", "delete", "read")), st.sampled_from(NAMES)),
        st.sampled_from(("refused", "partial", "lost", "cancelled")),
        max_size=2,
    ),
    kill=st.one_of(st.none(), st.builds(Kill, st.integers(1, 12), st.booleans())),
    goes_on=_seldom,
    vanishes=_hardly_a_name,
    drifts=_hardly_a_name,
    chosen=st.one_of(
        st.none(),
        st.none(),
        st.none(),
        st.builds(
            Chosen,
            st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True).map(tuple),
            st.booleans(),
            st.booleans(),
        ),
    ),
    reads=_seldom,
    replaces=st.one_of(_hardly_a_name, st.sampled_from(("", "", "", "", "default", "own"))),
    keeps_protected=_seldom,
)


@st.composite
def lives(draw: st.DrawFn) -> Life:
    """Draw a life: up to four moments, the last program, and at most three programs for all of them."""
    few = st.sampled_from(draw(st.lists(programs, min_size=1, max_size=3)))
    passing = draw(st.lists(moments, min_size=1, max_size=4))
    lived = tuple(replace(each, program=draw(few)) for each in passing)
    return Life(lived, last=draw(few), is_refreshed=draw(st.booleans()))


@pytest.fixture(scope="module")
def crypter() -> PassphraseCrypter:
    return PassphraseCrypter.new(PASSPHRASE)


@settings(
    max_examples=LIVES,
    deadline=None,
    derandomize=not (PROVES or SEARCHES),
    phases=[Phase.generate] if SEARCHES else [Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    report_multiple_bugs=False,
)
@given(life=lives())
@pytest.mark.parametrize("part", range(PARTS))
def test_a_life_loses_nothing_makes_nothing_twice_and_converges(
    life: Life, crypter: PassphraseCrypter, part: int
) -> None:
    del part
    folder = Path(tempfile.mkdtemp(prefix="credfleet-life-", dir=scratch()))
    try:
        live(life, Stack(folder, crypter))
    except BaseException:
        note(f"live({life!r}, Stack(Path('/tmp/life'), PassphraseCrypter.new(PASSPHRASE)))")
        raise
    finally:
        shutil.rmtree(folder)
    tried("lives of a stack")


A, B, E = Spec("a"), Spec("b"), Spec("e")


@pytest.mark.parametrize(
    "life",
    [
        pytest.param(
            Life((Moment("update", (E,)), Moment("update", (replace(E, fixed=1),), kill=Kill(2, False))), ()),
            id="a replacement is killed, and the resource deleted",
        ),
        pytest.param(
            Life(
                (
                    Moment("update", (A,), {("create", "a"): "lost"}),
                    Moment("update", (A,), {("create", "a"): "refused"}),
                ),
                (A,),
            ),
            id="a create without an answer is made again, and refused",
        ),
        pytest.param(
            Life(
                (
                    Moment("update", (A,)),
                    Moment("update", (replace(A, has_password=True),), {("update", "a"): "partial"}),
                ),
                (A,),
            ),
            id="a secret came with an update that was made by half",
        ),
        pytest.param(
            Life(
                (
                    Moment("update", (A,), {("create", "a"): "partial"}),
                    Moment("destroy", kill=Kill(1, True)),
                ),
                (A,),
            ),
            id="a deletion is killed of what was made by half",
        ),
        pytest.param(
            Life(
                (
                    Moment("update", (A,)),
                    Moment("destroy", kill=Kill(2, False)),
                    Moment("update", (A,), kill=Kill(2, False)),
                ),
                (A,),
            ),
            id="a deletion is killed, and so is what replaces it",
        ),
        pytest.param(
            Life(
                (
                    Moment("update", (A,)),
                    Moment("update", (replace(E, former="a", has_password=True),), kill=Kill(2, False)),
                ),
                (A,),
            ),
            id="an update is killed that also renames, and the name is taken back",
        ),
        pytest.param(
            Life(
                (
                    Moment("update", (A,)),
                    Moment("update", (replace(E, former="a", has_password=True),), kill=Kill(2, False)),
                    Moment("update", (replace(E, former="a"),), {("update", "e"): "refused"}),
                ),
                (A,),
            ),
            id="an update is killed that also renames, its continuation refused, and the name taken back",
        ),
        pytest.param(
            Life(
                (Moment("update", (replace(B, fixed=1), replace(E, deleted_with="b"))),),
                (replace(B, delete_first=True), replace(E, color=1)),
            ),
            id="a host goes first, and what went with it is changed to stay",
        ),
        pytest.param(
            Life(
                (
                    Moment("update", (replace(B, fixed=1), replace(E, deleted_with="b"))),
                    Moment(
                        "update",
                        (replace(B, delete_first=True), replace(E, color=1)),
                        {("update", "e"): "refused"},
                        goes_on=True,
                    ),
                ),
                (B, E),
            ),
            id="a host goes first, and what is to stay cannot be changed",
        ),
        pytest.param(
            Life(
                (Moment("update", (A, Spec("c", fixed_uses=("a",)), replace(E, fixed=1, deleted_with="c"))),),
                (replace(A, color=1, delete_first=True, replaces_on_color=True), E),
            ),
            id="what goes with what went first is replaced to stay",
        ),
        pytest.param(
            Life(
                (
                    Moment("update", (A, replace(E, deleted_with="a"))),
                    Moment("update", (A, replace(E, deleted_with="a")), chosen=Chosen(("a",)), replaces="a"),
                ),
                (A, replace(E, deleted_with="a")),
            ),
            id="a host is made anew, and what goes with it is not meant",
        ),
        pytest.param(
            Life(
                (
                    Moment("update", (A, replace(E, deleted_with="a"))),
                    Moment(
                        "update",
                        (replace(A, fixed=1), replace(E, deleted_with="a")),
                        {("create", "e"): "refused"},
                        goes_on=True,
                    ),
                ),
                (replace(A, fixed=1), replace(E, deleted_with="a")),
            ),
            id="a host is replaced, and what goes with it could not be",
        ),
        pytest.param(
            Life(
                (
                    Moment("update", (A,)),
                    Moment("update", (A, replace(E, deleted_with="a")), kill=Kill(5, False), replaces="a"),
                ),
                (A,),
            ),
            id="what goes with a replacement goes on its own while the old half is left",
        ),
        pytest.param(
            Life(
                (
                    Moment("update", (A, replace(E, deleted_with="a"))),
                    Moment("update", (replace(A, fixed=1), E), {("delete", "a"): "refused"}),
                ),
                (replace(A, fixed=1), replace(E, deleted_with="a")),
            ),
            id="what is to go with a replacement again while the old half is left",
        ),
        pytest.param(
            Life(
                (
                    Moment("update", (replace(A, served=1), B)),
                    Moment("update", (replace(A, served=2), B), {("delete", "a"): "refused"}),
                ),
                (replace(A, served=2), B),
            ),
            id="a provider is replaced, and what it has is not deleted",
        ),
        pytest.param(
            Life(
                (
                    Moment("update", (A, B, replace(E, uses=("a", "b")))),
                    Moment(
                        "update",
                        (A, B, replace(E, uses=("a", "b"))),
                        chosen=Chosen(("a",), dependents=True),
                        replaces="default",
                    ),
                ),
                (A, B, replace(E, uses=("a", "b"))),
            ),
            id="a provider is replaced, and what it has is not meant, but depended on",
        ),
        pytest.param(
            Life(
                (
                    Moment("update", (A,)),
                    Moment(
                        "update",
                        (replace(A, fixed=1, is_retained=True), replace(E, deleted_with="a")),
                        {("create", "e"): "partial"},
                        replaces="default",
                    ),
                ),
                (A,),
            ),
            id="a host is retained whose own old half goes at the same time",
        ),
        pytest.param(
            Life(
                (
                    Moment("update", (replace(B, served=2),)),
                    Moment("update", (B, replace(E, uses=("b",))), {("create", "e"): "partial"}),
                    Moment("destroy"),
                ),
                (B,),
            ),
            id="the old half of what is depended on has another provider",
        ),
        pytest.param(
            Life(
                (
                    Moment("update", (A, replace(E, deleted_with="a", is_protected=True))),
                    Moment("update", (replace(A, is_read=True),)),
                ),
                (A, replace(E, deleted_with="a")),
            ),
            id="a host was looked up in place of what it goes with, which is left",
        ),
        pytest.param(
            Life(
                (
                    Moment("update", (B, replace(E, deleted_with="b"))),
                    Moment(
                        "update",
                        (B, replace(E, fixed=1)),
                        {("delete", "e"): "refused"},
                        replaces="default",
                    ),
                ),
                (replace(E, fixed=2),),
            ),
            id="an old half goes with a host, and its provider is another one",
        ),
    ],
)
def test_what_was_begun_is_not_forgotten_when(life: Life, crypter: PassphraseCrypter, tmp_path: Path) -> None:
    live(life, Stack(tmp_path, crypter))
