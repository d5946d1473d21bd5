"""When an object is ready or gone, and how long that is waited for."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Properties
from pulumi_sandbox.providers.kubernetes import await_, objects
from pulumi_sandbox.providers.kubernetes.errors import NotReadyError

READY: Properties = {
    "status": {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Bound", "n": [4]}
}


def waiting_for(*texts: str, **more: str) -> Properties:
    asked = texts[0] if len(texts) == 1 else json.dumps(texts)
    return {"metadata": {"annotations": {objects.WAIT_FOR: asked, **more}}}


def no_pause(_seconds: float) -> None:
    pass


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("condition=Ready", True),
        ("condition=Ready=False", False),
        ("condition=Synced", False),
        ("jsonpath={.status.phase}=Bound", True),
        ("jsonpath={$.status.phase}", True),
        ("jsonpath={.status.phase}=Lost", False),
        ("jsonpath={.status.n[0]}=4", True),
        ("jsonpath={.status.missing}", False),
    ],
)
def test_conditions_are_read_as_the_genuine_provider_reads_them(text: str, *, holds: bool):
    (condition,) = await_.conditions(waiting_for(text))
    assert condition.holds(READY) is holds


def test_several_conditions_come_as_a_list():
    asked = await_.conditions(waiting_for("condition=Ready", "jsonpath={.status.phase}"))
    assert [condition.text for condition in asked] == ["condition=Ready", "jsonpath={.status.phase}"]


def test_nothing_is_waited_for_unasked_or_when_the_wait_is_skipped():
    assert await_.conditions({"kind": "Deployment"}) == ()
    assert await_.conditions(waiting_for("condition=Ready", **{objects.SKIP_AWAIT: "true"})) == ()


@pytest.mark.parametrize("text", ["Ready", "jsonpath=.status", "jsonpath={.a[?(@.b)]}"])
def test_a_condition_of_another_form_is_refused(text: str):
    with pytest.raises(ValueError, match="neither condition="):
        await_.conditions(waiting_for(text))


@pytest.mark.parametrize(
    ("option", "annotated", "seconds"),
    [(5.0, "7", 5.0), (0.0, "7", 7.0), (0.0, "soon", 600.0), (0.0, "", 600.0)],
)
def test_the_resource_option_goes_before_the_annotation_and_ten_minutes(
    option: float, annotated: str, seconds: float
):
    inputs: Properties = {"metadata": {"annotations": {objects.TIMEOUT_SECONDS: annotated}}}
    assert await_.timeout(inputs, option) == seconds


def test_an_object_is_read_until_it_is_as_asked():
    later: Iterable[Properties] = iter([{}, READY])
    found = await_.until_ready(
        {},
        await_.conditions(waiting_for("condition=Ready")),
        lambda: next(iter(later)),
        seconds=60,
        pause=no_pause,
    )
    assert found == READY


def test_an_object_that_does_not_become_ready_is_returned_as_it_is_last():
    last: Properties = {"kind": "Bucket", "metadata": {"name": "b"}}
    with pytest.raises(NotReadyError, match="Bucket b did not reach condition=Ready") as missed:
        await_.until_ready(
            {}, await_.conditions(waiting_for("condition=Ready")), lambda: last, seconds=0.01, pause=no_pause
        )
    assert missed.value.live == last


def test_an_object_that_goes_away_ends_the_wait():
    with pytest.raises(NotReadyError, match="was deleted"):
        await_.until_ready(
            {}, await_.conditions(waiting_for("condition=Ready")), lambda: None, seconds=60, pause=no_pause
        )


@pytest.mark.parametrize("successor", [None, {"metadata": {"uid": "2"}}])
def test_an_object_is_gone_when_nothing_or_another_of_its_name_is_there(successor: Properties | None):
    reads = [successor]
    await_.until_gone({"metadata": {"uid": "1"}}, reads.pop, seconds=60, pause=no_pause)
    assert reads == []


def test_an_object_that_stays_names_what_holds_it():
    held: Properties = {
        "kind": "Bucket",
        "metadata": {"name": "b", "uid": "1", "finalizers": ["example.com/hold"]},
    }
    with pytest.raises(SandboxError, match=r"example\.com/hold"):
        await_.until_gone(held, lambda: held, seconds=0.01, pause=no_pause)
