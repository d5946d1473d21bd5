"""Events as JSON, under the names of `pulumi up --json` and `pulumi preview --json`."""

from typing import Final

from pulumi_sandbox.engine.model.diff import PropertyDiff
from pulumi_sandbox.engine.model.events import (
    Diagnostic,
    Event,
    Outputs,
    PolicyPackLoaded,
    PolicyViolation,
    StackStarted,
    StdoutLine,
    Step,
    StepFinished,
    StepPlanned,
    StepStarted,
    Summary,
)
from pulumi_sandbox.engine.model.resource import Resource, spelling
from pulumi_sandbox.protocol.values import Json

_TOLD: Final = (
    *("type", "urn", "custom", "delete", "id", "parent", "protect", "external", "retain_on_delete"),
    *("inputs", "outputs", "provider", "init_errors"),
)
"""What is told of a record."""


def event_json(event: Event) -> dict[str, Json]:
    """Return an event; the genuine stream has outputs only inside the stack's own step."""
    told: dict[str, Json]
    match event:
        case StackStarted(config=config):
            told = {"preludeEvent": {"config": dict(config)}}
        case PolicyPackLoaded(name, version):
            told = {"policyLoadEvent": {"policyPackName": name, "policyPackVersion": version}}
        case StepPlanned(step):
            told = {"resourcePreEvent": {"metadata": _metadata(step), "planning": True}}
        case StepStarted(step):
            told = {"resourcePreEvent": {"metadata": _metadata(step)}}
        case StepFinished(step, _, None):
            told = {"resOutputsEvent": {"metadata": _metadata(step)}}
        case StepFinished(step):
            told = {"resOpFailedEvent": {"metadata": _metadata(step), "status": 0, "steps": 0}}
        case Diagnostic(severity, message, urn):
            about = {"urn": urn} if urn else {}
            told = {"diagnosticEvent": {**about, "message": message, "color": "never", "severity": severity}}
        case StdoutLine(line):
            told = {"stdoutEvent": {"message": line, "color": "never"}}
        case PolicyViolation():
            told = {
                "policyEvent": {
                    "resourceUrn": event.urn,
                    "message": event.message,
                    "color": "never",
                    "policyName": event.policy,
                    "policyPackName": event.pack,
                    "policyPackVersion": event.pack_version,
                    "enforcementLevel": event.level,
                }
            }
        case Outputs(values):
            told = {"outputsEvent": {"outputs": values}}
        case Summary():
            told = {
                "summaryEvent": {
                    "maybeCorrupt": False,
                    "durationSeconds": round(event.seconds),
                    "resourceChanges": {op: count for op, count in event.changes.items()},
                    "isPreview": event.operation == "preview",
                    "result": event.outcome,
                }
            }
    return told


def digest(step: Step) -> dict[str, Json]:
    """Return a step as `pulumi preview --json` lists it."""
    return {
        "op": step.op,
        "urn": step.urn,
        "provider": step.resource.provider,
        "oldState": _state(step.old),
        "newState": _state(step.new),
        "diffReasons": [change.path for change in step.changes],
        "replaceReasons": [*step.keys],
        "detailedDiff": _detailed(step, "kind"),
    }


def _metadata(step: Step) -> dict[str, Json]:
    """Return a step as events carry it."""
    return {
        "op": step.op,
        "urn": step.urn,
        "type": step.type,
        "old": _state(step.old),
        "new": _state(step.new),
        "keys": [*step.keys],
        "diffs": [change.path for change in step.changes],
        "detailedDiff": _detailed(step, "diffKind"),
        "provider": step.resource.provider,
    }


def _detailed(step: Step, kind: str) -> dict[str, Json]:
    def shown(diff: PropertyDiff) -> dict[str, Json]:
        return {kind: diff.kind, "inputDiff": diff.input_diff}

    return {path: shown(diff) for path, diff in (step.detailed_diff or {}).items()}


def _state(record: Resource | None) -> dict[str, Json] | None:
    return record and {spelling(name): getattr(record, name) for name in _TOLD}
