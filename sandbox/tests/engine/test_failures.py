"""What a failure stops, what it leaves, and how the next run goes on."""

import threading
from collections.abc import Callable
from dataclasses import replace

import grpc
import pytest
from pulumi_sandbox.engine import Diagnostic
from pulumi_sandbox.engine.model.resource import PendingOperation, Resource, Snapshot
from pulumi_sandbox.engine.state.checkpoint import verify
from pulumi_sandbox.engine.state.store import Store
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.stubs import alias_pb2, engine_pb2
from pulumi_sandbox.protocol.values import Properties, Secret

from sandbox.tests.support.engine_stack import Outcome, Stack, urn_of
from sandbox.tests.support.recording_provider import PartialFailureError, RecordingProvider
from sandbox.tests.support.scripted_program import Program, ProgramError, Script, nothing


def raising(error: Exception) -> Callable[[], None]:
    def interfere() -> None:
        raise error

    return interfere


@pytest.mark.parametrize("parallel", [0, -3])
def test_less_than_one_step_at_a_time_is_one(stack: Stack, parallel: int):
    assert stack.up(lambda script: script.register("a"), parallel=parallel).code == 0


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_no_state_can_hold_is_refused_by_its_name(stack: Stack, number: float):
    def registers(script: Script) -> None:
        script.register("a", {"deep": {"share": number}})

    def exports(script: Script) -> None:
        script.outputs(script.stack, {"share": number})

    for program in (registers, exports):
        (error,) = stack.up(program).errors
        assert f"property share: it is {number}" in error
        assert "Traceback" not in error


def test_a_failed_create_stops_the_deployment_and_leaves_no_record(stack: Stack, provider: RecordingProvider):
    provider.on["Create", "a"] = raising(ValueError("no more room"))
    up = stack.up(lambda program: program.register("a"))
    assert (up.code, up.errors) == (1, ["no more room"])
    assert up.ops("a") == ["!create"]
    assert stack.names == ["test-dev", "default"]
    assert stack.snapshot.pending == ()


def test_after_a_failure_no_step_begins_and_those_under_way_are_saved(
    stack: Stack, provider: RecordingProvider
):
    slow_is_creating, failed = threading.Event(), threading.Event()
    ends: list[BaseException | None] = []

    def slow() -> None:
        slow_is_creating.set()
        failed.wait(5)

    def fail() -> None:
        slow_is_creating.wait(5)
        raise ValueError("broken")

    provider.on["Create", "slow"] = slow
    provider.on["Create", "broken"] = fail

    def program(script: Script) -> None:
        def then_late() -> None:
            try:
                script.register("broken")
            finally:
                failed.set()
                script.register("late")

        ends.extend(script.together(lambda: script.register("slow"), then_late))

    stack.up(lambda program: program.register("gone"))
    up = stack.up(program)
    assert up.code == 1
    assert sorted(name for name in stack.names if name in ("slow", "late", "broken", "gone")) == [
        "gone",
        "slow",
    ]
    assert provider.names() == ["gone", "slow"]
    assert all(isinstance(end, grpc.RpcError) and end.code() is grpc.StatusCode.UNAVAILABLE for end in ends)


def test_nothing_is_deleted_after_an_error(stack: Stack, provider: RecordingProvider):
    stack.up(lambda program: program.register("gone"))
    provider.on["Create", "a"] = raising(ValueError("broken"))
    stack.up(lambda program: program.register("a"))
    assert provider.names() == ["gone"]
    assert "gone" in stack.names


def test_a_failed_update_keeps_the_old_record(stack: Stack, provider: RecordingProvider):
    stack.up(lambda program: program.register("a", {"colour": "blue"}))
    provider.on["Update", "a"] = raising(ValueError("broken"))
    up = stack.up(lambda program: program.register("a", {"colour": "red"}))
    assert up.code == 1
    assert stack.resource("a").inputs["colour"] == "blue"
    assert stack.snapshot.pending == ()


def test_a_failed_delete_keeps_the_record_and_spares_what_it_depends_on(
    stack: Stack, provider: RecordingProvider
):
    def program(script: Script) -> None:
        needed = script.register("needed")
        script.register("stubborn", {}, depends_on={"": [needed.urn]})

    stack.up(program)
    provider.on["Delete", "stubborn"] = raising(ValueError("not now"))
    up = stack.up(nothing)
    assert up.code == 1
    assert provider.names() == ["needed", "stubborn"]
    assert {"needed", "stubborn"} <= set(stack.names)


def test_a_failed_deletion_of_a_replaced_one_is_made_up_for_by_the_next_run(
    stack: Stack, provider: RecordingProvider
):
    stack.up(lambda program: program.register("a", {"fixed": "blue"}))
    provider.on["Delete", "a"] = raising(ValueError("not now"))
    assert stack.up(lambda program: program.register("a", {"fixed": "red"})).code == 1
    assert [each.delete for each in stack.records("a")] == [False, True]
    provider.on.clear()
    up = stack.up(lambda program: program.register("a", {"fixed": "red"}))
    assert up.ops("a") == ["same", "delete-replaced"]
    assert provider.names() == ["a"]


def test_a_replacement_that_was_only_deleted_is_created_by_the_next_run(
    stack: Stack, provider: RecordingProvider
):
    stack.up(lambda program: program.register("a", {"fixed": "blue", "exclusive": True}))
    provider.on["Create", "a"] = raising(ValueError("broken"))
    assert stack.up(lambda program: program.register("a", {"fixed": "red", "exclusive": True})).code == 1
    assert stack.resource("a").pending_replacement
    provider.on.clear()
    provider.calls.clear()
    up = stack.up(lambda program: program.register("a", {"fixed": "red", "exclusive": True}))
    assert up.code == 0, up.messages
    assert up.ops("a") == ["replace", "create-replacement"]
    assert not provider.of("Delete")
    assert provider.names() == ["a"]
    assert [each.pending_replacement for each in stack.records("a")] == [False]


def test_a_partial_failure_is_recorded_and_awaited_again(stack: Stack, provider: RecordingProvider):
    provider.on["Create", "a"] = raising(PartialFailureError("it does not get ready"))
    up = stack.up(lambda program: program.register("a", {"colour": "blue"}))
    assert (up.code, up.errors) == (1, ["it does not get ready"])
    record = stack.resource("a")
    assert record.init_errors == ("it does not get ready",)
    assert record.outputs == provider.thing("a").outputs
    provider.on.clear()
    up = stack.up(lambda program: program.register("a", {"colour": "blue"}))
    assert up.ops("a") == ["update"]
    assert stack.resource("a").init_errors == ()


def test_a_refused_input_stops_with_the_providers_reason_and_writes_nothing(
    stack: Stack, provider: RecordingProvider
):
    up = stack.up(lambda program: program.register("a", {"invalid": "too short"}))
    assert (up.code, up.errors) == (1, ["its property invalid is invalid: too short"])
    assert not provider.of("Create")


def test_outputs_of_the_stack_replace_the_old_ones_after_success_and_join_them_after_failure(
    stack: Stack, provider: RecordingProvider
):
    def program(script: Script) -> None:
        script.exported = exported
        script.register("a", {"colour": str(len(exported))})

    exported: Properties = {"one": 1, "two": 2}
    stack.up(program)
    exported = {"two": 22}
    assert stack.up(program).result.outputs == {"two": 22}
    assert stack.resource("test-dev").outputs == {"two": 22}

    def failing(script: Script) -> None:
        script.exported = {"three": 3}
        raise ProgramError("in the middle")

    assert stack.up(failing).code == 1
    assert stack.resource("test-dev").outputs == {"two": 22, "three": 3}


def test_an_error_that_is_only_logged_does_not_fail_the_run(stack: Stack):
    up = stack.up(lambda program: program.log("oh dear", engine_pb2.ERROR))
    assert up.errors == ["oh dear"]
    assert up.code == 0


def test_debug_messages_are_dropped(stack: Stack):
    def program(script: Script) -> None:
        script.log("news", engine_pb2.INFO)
        script.log("chatter", engine_pb2.DEBUG)

    up = stack.up(program)
    assert "news" in up.text
    assert "chatter" not in up.text


def test_a_failing_program_deletes_nothing(stack: Stack, provider: RecordingProvider):
    def failing(script: Script) -> None:
        raise ProgramError("before it registered anything")

    stack.up(lambda program: program.register("a"))
    up = stack.up(failing)
    assert up.code == 1
    assert provider.names() == ["a"]
    assert len(up.errors) == 1


def test_a_provider_that_is_gone_is_named(stack: Stack, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PULUMI_DEBUG_PROVIDERS", "fake:1")
    up = stack.up(lambda program: program.register("a"))
    assert up.failed_with("provider fake at 127.0.0.1:1")


def test_an_unknown_package_is_refused_by_name(stack: Stack):
    up = stack.up(lambda program: program.register("a", type_="aws:s3:Bucket"))
    assert up.failed_with("package aws")


def test_secrets_are_masked_in_everything_told(stack: Stack, provider: RecordingProvider):
    def program(script: Script) -> None:
        a = script.register("a", {"deep": {"word": Secret("hush-hush")}, "colour": colour})
        script.exported = {"resource": {"inner": [a.outputs["deep"]]}}
        script.log("a program that says hush-hush")

    colour = "blue"
    ups = [stack.preview(program), stack.up(program)]
    colour = "red"
    ups.append(stack.up(program))
    provider.on["Delete", "a"] = raising(ValueError("cannot delete hush-hush"))
    ups.append(stack.destroy())
    for up in ups:
        assert "hush-hush" not in up.text
    assert "[secret]" in ups[1].text
    assert "hush-hush" not in stack.state_text


# Crashes: what a killed engine leaves, the next run makes good


class CopyingStore(Store):
    """A store that keeps a copy of every snapshot, to begin a later run with."""

    saved: list[Snapshot]

    def save(self, snapshot: Snapshot) -> None:
        self.saved.append(snapshot)
        super().save(snapshot)


def snapshots_of(stack: Stack, run: Callable[[Stack], object]) -> list[Snapshot]:
    """Return every snapshot a run writes."""
    usual = stack.store
    stack.store = copying = CopyingStore(stack.directory / "backend", "test", "dev", stack.crypter)
    copying.saved = []
    run(stack)
    stack.store = usual
    return copying.saved


def test_each_call_is_recorded_as_pending_before_it_is_made_and_forgotten_after(
    stack: Stack, provider: RecordingProvider
):
    seen: dict[str, list[str]] = {}

    def look(method: str) -> Callable[[], None]:
        def note() -> None:
            seen[method] = [each.type for each in stack.snapshot.pending]

        return note

    for method in ("Create", "Update", "Delete"):
        provider.on[method, "a"] = look(method)
    stack.up(lambda program: program.register("a", {"colour": "blue"}))
    stack.up(lambda program: program.register("a", {"colour": "red"}))
    stack.up(nothing)
    assert seen == {"Create": ["creating"], "Update": ["updating"], "Delete": ["deleting"]}
    assert stack.snapshot.pending == ()


def test_every_record_stands_after_what_it_refers_to_in_every_snapshot(stack: Stack):
    def program(script: Script) -> None:
        parent = script.component("p")
        a = script.register("a", {"fixed": colour}, parent=parent.urn)
        script.register("b", {"on": a.id}, depends_on={"on": [a.urn]}, deletedWith=a.urn)
        script.outputs(parent.urn, {"id": a.id})

    def both(stack: Stack) -> None:
        stack.up(program)
        nonlocal colour
        colour = "red"
        stack.up(program)

    colour = "blue"
    for snapshot in snapshots_of(stack, both):
        known: set[str] = set()
        for record in snapshot.resources:
            provider = record.provider.rpartition("::")[0]
            assert known.issuperset({*record.references, *filter(None, [provider])})
            known.add(record.urn)


def test_references_follow_a_renaming_only_when_the_renamed_resource_is_recorded(stack: Stack):
    def program(script: Script) -> None:
        aliases = [alias_pb2.Alias(spec=alias_pb2.Alias.Spec(name="old"))]
        a = script.register(name, {"colour": name, "name": "n"}, aliases=aliases)
        script.register("user", {"on": a.id}, depends_on={"on": [a.urn]}, deletedWith=a.urn)

    name = "old"
    stack.up(program)
    name = "new"
    for snapshot in snapshots_of(stack, lambda stack: stack.up(program)):
        verify(snapshot)
    assert stack.resource("user").deleted_with == stack.resource("new").urn


def test_a_create_that_was_cut_off_is_checked_with_the_inputs_it_was_begun_with(
    stack: Stack, provider: RecordingProvider
):
    begun = next(
        snapshot
        for snapshot in snapshots_of(stack, lambda stack: stack.up(lambda program: program.register("a")))
        if snapshot.pending and snapshot.pending[0].resource.urn.endswith("::a")
    )
    stack.store.save(begun)
    provider.calls.clear()
    stack.up(lambda program: program.register("a"))
    (check,) = provider.of("Check", "a")
    assert check.properties("olds") == begun.pending[0].resource.inputs
    assert stack.resource("a").inputs == begun.pending[0].resource.inputs
    assert stack.snapshot.pending == ()


@pytest.mark.parametrize(
    ("fault", "pending"), [(PartialFailureError("half"), []), (ConnectionError("gone"), ["creating"])]
)
def test_only_a_create_without_an_answer_stays_begun_and_the_next_run_asks_for_the_same_name(
    stack: Stack, provider: RecordingProvider, fault: Exception, pending: list[str]
):
    provider.on["Create", "a"] = raising(fault)
    assert stack.up(lambda program: program.register("a")).code == 1
    assert [each.type for each in stack.snapshot.pending] == pending
    provider.on.clear()
    assert stack.up(lambda program: program.register("a")).code == 0
    assert stack.snapshot.pending == ()
    asked, *again = [call.properties("properties")["name"] for call in provider.of("Create", "a")]
    assert again == [asked] * len(pending)


def test_what_an_interrupted_update_or_deletion_left_is_brought_to_what_is_declared(
    stack: Stack, provider: RecordingProvider
):
    def program(script: Script) -> None:
        script.register("changed", {"colour": "blue"})
        script.register("gone")

    stack.up(program)
    changed, gone = stack.resource("changed"), stack.resource("gone")
    begun = (PendingOperation(changed, "updating"), PendingOperation(gone, "deleting"))
    stack.store.save(replace(stack.snapshot, pending=begun))
    del provider.things[gone.id]
    up = stack.up(program)
    assert (up.ops("changed"), up.code) == (["update"], 0)
    assert provider.names() == ["changed", "gone"]
    assert stack.snapshot.pending == ()


@pytest.mark.parametrize(("is_retained", "left"), [(True, ["host"]), (False, ["guest", "host"])])
def test_what_goes_with_a_resource_is_not_forgotten_when_that_one_stays(
    stack: Stack, provider: RecordingProvider, is_retained: bool, left: list[str]
):
    def program(script: Script) -> None:
        host = script.register("host", retainOnDelete=is_retained)
        script.register("guest", deletedWith=host.urn)

    stack.up(program)
    provider.on["Delete", "host"] = raising(ValueError("broken"))
    assert stack.destroy().code == (0 if is_retained else 1)
    assert provider.names() == left
    assert is_retained or {"guest", "host"} <= {*stack.names}


def test_what_goes_with_what_goes_with_another_providers_resource_goes_from_the_state_before_it(
    stack: Stack, provider: RecordingProvider
):
    def program(script: Script) -> None:
        own = script.register("own", {}, type_="pulumi:providers:fake")
        host = script.register("host", provider=own.reference)
        guest = script.register("guest", deletedWith=host.urn)
        script.register("guests-guest", deletedWith=guest.urn)

    stack.up(program)
    states: list[list[str]] = []
    provider.on["Delete", "host"] = lambda: states.append(stack.names)
    destroy = stack.destroy()
    assert (destroy.code, destroy.errors, stack.names) == (0, [], [])
    assert "guests-guest" not in states[0]


def test_of_the_operations_left_pending_only_creates_are_kept(stack: Stack):
    stack.up(lambda program: program.register("a"))
    left = tuple(
        PendingOperation(
            Resource(
                urn=f"urn:pulumi:dev::test::fake:index:Thing::{type_}", type="fake:index:Thing", custom=True
            ),
            type_,
        )
        for type_ in ("creating", "updating", "deleting")
    )
    stack.store.save(replace(stack.snapshot, pending=left))
    up = stack.up(lambda program: program.register("a"))
    assert stack.snapshot.pending == left[:1]
    assert any("may exist unnoticed" in message for message in up.messages)


def test_from_every_snapshot_a_run_writes_the_next_run_converges(stack: Stack, provider: RecordingProvider):
    def program(script: Script) -> None:
        parent = script.component("p")
        a = script.register("a", {"fixed": colour, "name": "a"}, parent=parent.urn)
        script.register("b", {"fixed": a.id, "exclusive": True, "name": "b"}, depends_on={"fixed": [a.urn]})
        if colour == "blue":
            script.register("gone", {"name": "gone"})
        script.outputs(parent.urn, {"id": a.id})

    def change(stack: Stack) -> None:
        nonlocal colour
        colour = "red"
        assert stack.up(program).code == 0

    colour = "blue"
    stack.up(program)
    expected = ["a", "b"]
    for snapshot in snapshots_of(stack, change):
        stack.store.save(snapshot)
        assert stack.up(program).code == 0
        assert sorted(name for name in stack.names if name in (*expected, "gone")) == expected
        assert stack.snapshot.pending == ()
        assert stack.up(program).result.summary.changes == {"same": 4}


class FullDisk(Store):
    """A store whose disk is full from a certain write on."""

    room: int

    def save(self, snapshot: Snapshot) -> None:
        self.room -= 1
        if self.room < 0:
            raise SandboxError(code="disk-full", place="the disk", cause="it is full", mend="make room")
        super().save(snapshot)


def test_a_full_disk_stops_the_run_before_the_call_it_could_not_record(
    stack: Stack, provider: RecordingProvider
):
    full = FullDisk(stack.directory / "backend", "test", "dev", stack.crypter)
    full.room = 2
    stack.store = full
    up = stack.up(lambda program: [program.register(name) for name in ("a", "b")])
    assert up.failed_with("it is full")
    assert len(provider.names()) <= 1


def test_a_missing_environment_is_told_by_its_path(stack: Stack):
    (stack.virtualenv / "bin" / "python").unlink()
    with pytest.raises(SandboxError) as missing:
        stack.up(nothing)
    assert missing.value.code == "program-missing"
    assert "environment/bin/python" in missing.value.place


def test_two_runs_at_once_exclude_each_other(stack: Stack):
    with stack.store.locked(), pytest.raises(SandboxError) as refused:
        stack.up(nothing)
    assert refused.value.code == "stack-locked"


def run_of(*programs: Program) -> list[Program]:
    return [*programs]


@pytest.mark.parametrize(
    "programs",
    [
        pytest.param(run_of(lambda script: script.register("a", {}, protect=True), nothing), id="protected"),
        pytest.param(run_of(lambda script: script.register("a", {"invalid": "no"})), id="refused inputs"),
        pytest.param(run_of(lambda script: [script.register("a"), script.register("a")]), id="doubled"),
        pytest.param(run_of(lambda script: script.read("a", "none")), id="not there"),
        pytest.param(
            run_of(
                lambda script: script.register("a", {}, ignoreChanges=["b["]),
                lambda script: script.register("a", {}, ignoreChanges=["b["]),
            ),
            id="no path",
        ),
        pytest.param(run_of(lambda script: script.register("a", parent=urn_of("none"))), id="no parent"),
        pytest.param(run_of(lambda script: script.register("a", {}, importId="none")), id="not to import"),
    ],
)
@pytest.mark.parametrize("way", ["up", "preview"])
def test_an_error_of_a_resource_tells_which_it_is(stack: Stack, way: str, programs: list[Program]):
    for program in programs[:-1]:
        stack.up(program)
    outcome: Outcome = getattr(stack, way)(programs[-1])
    errors = [
        event for event in outcome.events if isinstance(event, Diagnostic) and event.severity == "error"
    ]
    assert [urns.parse(each.urn).name for each in errors] == ["a"]


def test_what_a_replaced_provider_still_has_is_deleted_by_it_in_a_later_run(
    stack: Stack, provider: RecordingProvider
):
    def program(script: Script) -> None:
        own = script.register("own", {"fixed": zone}, type_="pulumi:providers:fake")
        script.register("a", provider=own.reference)

    zone = "x"
    stack.up(program)
    zone = "y"
    provider.on["Delete", "a"] = raising(ValueError("in use"))
    assert stack.up(program).failed_with("in use")
    assert [each.delete for each in stack.snapshot.resources if each.urn == urn_of("a")] == [False, True]
    provider.on.clear()
    again = stack.up(program)
    assert (again.code, again.errors) == (0, [])
    assert stack.names == ["test-dev", "own", "a"]
    assert provider.names() == ["a"]
