"""Reduces a published contract to the paths that are spoken here, as `contracts` folders of tests keep it.

`python -m sandbox.tests.witness.reduce NAME FILE` writes the kept contract anew from FILE, as published.
What is left out is prose, examples, and what no path that is kept reaches.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

_ROOT: Final = Path(__file__).parents[3]
_CLUSTER: Final = "/api/hyperfleet/v1/clusters/{cluster_id}"
_SERVER: Final = "https://github.com/openshift-hyperfleet/hyperfleet-api/blob/541f6b4a2f23"


@dataclass(frozen=True, slots=True)
class Published:
    """Where a contract is published, in which version, and which of its paths are kept in which file.

    beyond: method, path and status of an answer that it leaves out, and the source that says so.
    """

    repository: str
    file: str
    version: str
    paths: Sequence[str]
    kept: Path
    beyond: Mapping[str, str] = field(default_factory=dict[str, str])


def _hyperfleet(version: str, **beyond: str) -> Published:
    return Published(
        repository="https://github.com/openshift-hyperfleet/hyperfleet-api-spec",
        file="schemas/core/openapi.yaml",
        version=version,
        paths=(_CLUSTER, f"{_CLUSTER}/statuses"),
        kept=_ROOT / "tests/witness/contracts" / f"hyperfleet-{version}.json",
        beyond=beyond,
    )


_DROPPED: Final = {f"PUT {_CLUSTER}/statuses 204": f"{_SERVER}/pkg/handlers/resource_status_handler.go"}
PUBLISHED: Final = {
    "hyperfleet-v1.0.2": _hyperfleet("v1.0.2"),
    "hyperfleet-v1.0.24": _hyperfleet("v1.0.24", **_DROPPED),
}

_PROSE: Final = frozenset({"description", "example", "examples", "summary", "tags", "title"})


def reduced(published: Mapping[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    """Return what of an OpenAPI document these paths say and mean; raises KeyError for a path it has not."""
    kept = {path: _terse(published["paths"][path]) for path in paths}
    components: dict[str, dict[str, Any]] = {}
    open_ = [*_references(kept)]
    while open_:
        _, _, kind, name = open_.pop().split("/")
        if name not in components.setdefault(kind, {}):
            components[kind][name] = _terse(published["components"][kind][name])
            open_ += _references(components[kind][name])
    sorted_ = {kind: dict(sorted(named.items())) for kind, named in sorted(components.items())}
    return {"paths": kept, "components": sorted_}


def _terse(node: Any, names: bool = False) -> Any:
    """Leave prose out; names: whether the keys of the node are names, of properties, rather than words."""
    if isinstance(node, list):
        return [_terse(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _terse(value, names=key in ("properties", "responses"))
        for key, value in node.items()
        if names or key not in _PROSE
    }


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for each in node:
            yield from _references(each)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            else:
                yield from _references(value)


def document(published: Published, text: bytes) -> dict[str, Any]:
    """Return what is kept of a contract, from the bytes of its file as they were published."""
    source = {
        "repository": published.repository,
        "file": published.file,
        "version": published.version,
        "sha256": hashlib.sha256(text).hexdigest(),
    }
    return {
        "source": source,
        "beyond": dict(published.beyond),
        **reduced(YAML(typ="safe").load(text), published.paths),
    }


def main(name: str, file: str) -> None:
    """Write a kept contract anew."""
    published = PUBLISHED[name]
    published.kept.write_text(json.dumps(document(published, Path(file).read_bytes()), indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
