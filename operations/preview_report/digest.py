"""Reads a preview as JSON: the digest of `preview --json`, or a stream with one event per line.

The CLI writes either, the stream with PULUMI_ENABLE_STREAMING_JSON_PREVIEW=true. Only the stream contains the
results of policies.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Final, TypeVar

from pulumi_sandbox.protocol import urns
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from components.documents import TooDeep, read_json
from components.errors import CredfleetError
from operations.cli.inputs import unreadable

_FIX: Final = "give it what `pulumi preview --json` writes"

_T = TypeVar("_T")
Given = Annotated[_T, BeforeValidator(lambda value: {} if value is None else value)]
"""An object; null counts as absent."""
Listed = Annotated[_T, BeforeValidator(lambda value: () if value is None else value)]
"""A list; null counts as absent."""


def _urn(text: str) -> str:
    if text:
        urns.parse(text)
    return text


Urn = Annotated[str, Field(min_length=1), BeforeValidator(_urn)]
MaybeUrn = Annotated[str, BeforeValidator(_urn)]


class _Part(BaseModel):
    """Anything a later version adds is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, hide_input_in_errors=True)


class State(_Part):
    """A resource before or after; secrets are masked already, or sealed."""

    parent: MaybeUrn = ""
    inputs: Given[dict[str, Any]] = {}
    outputs: Given[dict[str, Any]] = {}


class Step(_Part):
    """One operation on one resource. Reasons and the diff's keys are paths of properties."""

    op: str
    urn: Urn
    old: State | None = Field(default=None, alias="oldState")
    new: State | None = Field(default=None, alias="newState")
    diffs: Listed[tuple[str, ...]] = Field(default=(), alias="diffReasons", strict=False)
    keys: Listed[tuple[str, ...]] = Field(default=(), alias="replaceReasons", strict=False)
    detailed_diff: Given[dict[str, Any]] = Field(default={}, alias="detailedDiff")

    @property
    def states(self) -> list[State]:
        """The resource after, and before, as far as it is there then."""
        return [each for each in (self.new, self.old) if each]


class Diagnostic(_Part):
    """What the program, a provider or the engine said."""

    urn: MaybeUrn = ""
    message: str = ""
    severity: str = ""


class PolicyEvent(_Part):
    """What one rule says of one resource, or of the stack."""

    urn: MaybeUrn = Field(default="", alias="resourceUrn")
    policy: str = Field(alias="policyName")
    level: str = Field(alias="enforcementLevel")
    message: str = ""


class Digest(_Part):
    """A preview. policies: None when the document cannot tell whether any judged; so is failed."""

    config: Given[dict[str, Any]] = {}
    steps: Listed[tuple[Step, ...]] = Field(default=(), strict=False)
    diagnostics: Listed[tuple[Diagnostic, ...]] = Field(default=(), strict=False)
    changes: Given[dict[str, int]] = Field(default={}, alias="changeSummary")
    policies: tuple[PolicyEvent, ...] | None = Field(default=None, alias="policyEvents", strict=False)
    failed: bool | None = None

    def messages(self) -> Iterator[str]:
        """Yield what errors, warnings and policies say, which no review shows: it could quote a value."""
        yield from (each.message for each in self.diagnostics if each.severity in ("error", "warning"))
        yield from (each.message for each in self.policies or () if each.level in ("mandatory", "advisory"))


_FIELDS: Final = {
    field.alias or name
    for part in (State, Step, Diagnostic, PolicyEvent, Digest)
    for name, field in part.model_fields.items()
}
"""Field names of a document that an error message can show."""


def parse(content: bytes, place: str) -> Digest:
    """Parse a preview.

    place: where the content was read from, for messages. Raises CredfleetError `preview-unreadable`, and as
    `unreadable`. The content is never quoted.
    """
    try:
        text = content.decode("utf-8-sig")
        return Digest.model_validate(_one_document(text) or _gathered([*_events(text, place)], place))
    except ValidationError as error:
        found = error.errors(include_input=False, include_context=False, include_url=False)[0]
        where = ".".join(str(part) for part in found["loc"] if isinstance(part, int) or part in _FIELDS)
        raise _unreadable(place, f"{where or 'the document'} is not as a preview has it") from None
    except UnicodeDecodeError:
        raise unreadable(place, "it is not UTF-8", "a file with what `pulumi preview --json` wrote") from None
    except TooDeep:
        raise _unreadable(place, "it is nested deeper than any preview") from None


def _one_document(text: str) -> dict[str, Any] | None:
    """Parse a digest; None if the text may consist of lines of events."""
    try:
        document = read_json(text)
    except TooDeep:
        raise
    except ValueError:
        return None
    is_digest = isinstance(document, dict) and not document.keys().isdisjoint(
        {"steps", "changeSummary", "diagnostics"}
    )
    return document if is_digest else None


def _events(text: str, place: str) -> Iterator[dict[str, Any]]:
    if not text.strip():
        raise _unreadable(place, "it is empty")
    for number, line in enumerate(text.splitlines(), 1):
        event: Any = {}
        try:
            event = read_json(line) if line.strip() else event
        except ValueError:
            event = None
        if not isinstance(event, dict):
            raise _unreadable(place, f"line {number} is not a JSON object, nor is the whole one document")
        yield event


def digest_of(events: Sequence[dict[str, Any]], place: str) -> Digest:
    """Return the digest of events; raises CredfleetError `preview-unreadable`."""
    return Digest.model_validate(_gathered(events, place))


def _gathered(events: Sequence[dict[str, Any]], place: str) -> dict[str, Any]:
    """Return the content of a digest, assembled from events as the CLI does."""
    if not any("preludeEvent" in event or "summaryEvent" in event for event in events):
        raise _unreadable(place, "it is JSON, but not a preview")
    summary = next(_of_kind(events, "summaryEvent"), {})
    prelude = next(_of_kind(events, "preludeEvent"), {})
    policies = [*_of_kind(events, "policyEvent")]
    return {
        "config": prelude.get("config"),
        "steps": [_step(each.get("metadata")) for each in _of_kind(events, "resourcePreEvent")],
        "diagnostics": [
            {**each, "message": f"{each.get('prefix') or ''}{each.get('message') or ''}"}
            for each in _of_kind(events, "diagnosticEvent")
            if not each.get("ephemeral")
        ],
        "changeSummary": summary.get("resourceChanges"),
        "policyEvents": policies if any("policyLoadEvent" in event for event in events) else None,
        "failed": summary.get("result") != "succeeded",
    }


def _of_kind(events: Iterable[dict[str, Any]], kind: str) -> Any:
    return (event[kind] for event in events if isinstance(event.get(kind), dict))


def _step(metadata: Any) -> Any:
    if not isinstance(metadata, dict):
        return metadata
    given = {"op": "op", "urn": "urn", "oldState": "old", "newState": "new", "diffReasons": "diffs"}
    given |= {"replaceReasons": "keys", "detailedDiff": "detailedDiff"}
    return {name: metadata.get(event_name) for name, event_name in given.items()}


def _unreadable(place: str, problem: str) -> CredfleetError:
    return CredfleetError(code="preview-unreadable", place=place, problem=problem, fix=_FIX)
