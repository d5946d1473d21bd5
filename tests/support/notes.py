"""A dynamic provider that keeps notes in a folder: the shell of the project's providers, and nothing else."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pulumi.dynamic import CheckFailure

from components.dynamic import IDENTITY, DynamicProvider, Properties
from components.errors import CredfleetError


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteArgs:
    folder: str = field(metadata=IDENTITY)
    file_name: str = field(metadata=IDENTITY)
    text: str
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    remark: str = field(default="none", compare=False)


class NoteProvider(DynamicProvider):
    args = NoteArgs
    outputs = ("length", "writer")
    refreshed = ("text",)

    def failures(self, inputs: Properties, olds: Properties) -> Iterator[CheckFailure]:
        if not inputs["text"]:
            yield CheckFailure("text", "a note says something")
        elif len(olds.get("text", "")) > len(inputs["text"]):
            yield CheckFailure("text", "a note never becomes shorter")

    def is_stale(self, olds: Properties, news: Properties) -> bool:
        return _path(news).read_text() != olds["text"]

    def name(self, state: Properties) -> str:
        return f"{state['fileName']}/{int(state['length'])}"

    def create_resource(self, props: Properties) -> Properties:
        if props["text"] == "refused":
            raise CredfleetError(code="refused", place="note", problem="it is refused", fix="write another")
        _path(props).write_text(props["text"])
        return {"length": len(props["text"]), "writer": self.configured("writer")}

    def update_resource(self, _id: str, _olds: Properties, news: Properties) -> Properties:
        return {"length": self.create_resource(news)["length"]}

    def read_resource(self, _id: str, props: Properties) -> Properties | None:
        path = _path(props)
        return {"text": path.read_text(), "length": 0} if path.exists() else None

    def delete_resource(self, _id: str, props: Properties) -> None:
        _path(props).unlink()


def _path(props: Properties) -> Path:
    return Path(props["folder"]) / props["fileName"]
