"""A dynamic provider that keeps each thing in a file, remembers it, and fails as it is told to."""

import json
import os
import signal
from pathlib import Path
from typing import Any
from uuid import uuid4

from pulumi.dynamic import CheckResult, CreateResult, DiffResult, ReadResult, ResourceProvider, UpdateResult


class ThingProvider(ResourceProvider):
    """Makes files in the folder `world` of the inputs; a thing is its own by the name chosen for it."""

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Choose a name where none was chosen yet."""
        chosen = (olds or {}).get("name") or f"{news['logical']}-{uuid4().hex[:8]}"
        return CheckResult({**news, "name": chosen}, [])

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare inputs; what begins with `fixed` cannot change in place."""
        changed = [key for key in {*olds, *news} - {"made"} if olds.get(key) != news.get(key)]
        changed = [key for key in changed if not key.startswith("__")]
        return DiffResult(
            changes=bool(changed),
            replaces=[key for key in changed if key.startswith("fixed")],
            delete_before_replace="exclusive" in news,
        )

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Make a thing, or find the one of this name that an answer never told of."""
        world = Path(props["world"])
        fault = _begin(world, "create", props)
        same = (each.stem for each in world.glob("*.thing") if _told(each)["name"] == props["name"])
        id_ = next(same, f"id-{uuid4().hex[:8]}")
        return CreateResult(id_, _end(world, fault, id_, props))

    def update(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Change a thing in place."""
        del olds
        world = Path(news["world"])
        fault = _begin(world, "update", news)
        if not (world / f"{id_}.thing").exists():
            raise RuntimeError(f"there is no {id_}")
        return UpdateResult(_end(world, fault, id_, news))

    def delete(self, id_: str, _props: dict[str, Any]) -> None:
        """Unmake a thing; one that is gone is no error."""
        world = Path(_props["world"])
        fault = _begin(world, "delete", _props)
        (world / f"{id_}.thing").unlink(missing_ok=True)
        if fault == "lost":
            os._exit(1)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Report a thing as it is."""
        thing = Path(props["world"]) / f"{id_}.thing"
        return ReadResult(id_, _outputs(id_, _told(thing))) if thing.exists() else ReadResult("", {})


def _told(thing: Path) -> dict[str, Any]:
    return json.loads(thing.read_text(encoding="utf-8"))


def _outputs(id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
    return {**inputs, "made": f"by {id_}"}


def _begin(world: Path, method: str, props: dict[str, Any]) -> str:
    """Write a call down, and return what is to become of it."""
    with (world / "calls").open("a", encoding="utf-8") as calls:
        calls.write(f"{method} {props['logical']}\n")
    fault = json.loads((world / "faults.json").read_text(encoding="utf-8")).get(
        f"{method} {props['logical']}"
    )
    if fault == "refused":
        raise RuntimeError("not now")
    if fault == "cancelled":
        os.kill(int((world / "engine").read_text(encoding="utf-8")), signal.SIGINT)
    return fault or ""


def _end(world: Path, fault: str, id_: str, props: dict[str, Any]) -> dict[str, Any]:
    inputs = {key: value for key, value in props.items() if not key.startswith("__")}
    part = world / f"{id_}.part"  # others look through all things meanwhile
    part.write_text(json.dumps(inputs), encoding="utf-8")
    part.replace(world / f"{id_}.thing")
    if fault == "lost":
        os._exit(1)
    return _outputs(id_, inputs)
