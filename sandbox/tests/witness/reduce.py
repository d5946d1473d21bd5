"""Reduces a published contract to the paths that are spoken here, as `contracts` folders of tests keep it.

`python -m sandbox.tests.witness.reduce NAME FILE VERSION` writes the kept contract anew from FILE, which is
an OpenAPI document, or the wheel of Google's or Azure's package for Python, of VERSION. What is left out is
prose, examples, and what no path that is kept reaches.
"""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

from ruamel.yaml import YAML

_ROOT: Final = Path(__file__).parents[3]
_FOLDERS: Final = ("sandbox/tests/witness/contracts", "tests/witness/contracts")
_DISCOVERY: Final = "googleapiclient/discovery_cache/documents/secretmanager.v1.json"

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Published:
    """Where a contract is published, in which version, and which of its paths are kept in which file.

    read: makes OpenAPI's paths and components of its bytes, or of those of the wheel that has the file.
    beyond: method, path and status of an answer that it leaves out, and the source that says so.
    """

    source: str
    file: str
    version: str
    paths: Sequence[str]
    kept: Path
    read: Callable[[bytes], Document]
    beyond: Mapping[str, str]


def _openapi(text: bytes) -> Document:
    return YAML(typ="safe").load(text)


def _discovery(text: bytes) -> Document:
    """Read Google's discovery document; enums also go as numbers, where a client asks for that."""
    found = json.loads(ZipFile(BytesIO(text)).read(_DISCOVERY))
    paths: dict[str, dict[str, Any]] = {}
    for method in _methods(found):
        own = {name: one for name, one in method["parameters"].items() if one["location"] == "query"}
        body = {"requestBody": _json(method["request"])} if "request" in method else {}
        paths.setdefault(f"/{method['flatPath']}", {})[method["httpMethod"].lower()] = {
            "parameters": [{"name": name} for name in sorted({*own, *found["parameters"], "$alt"})],
            **body,
            "responses": {"200": _json(method["response"]), "default": _json({"$ref": "Error"})},
        }
    schemas = {name: _with_numbers(one) for name, one in found["schemas"].items()}
    texts = {key: {"type": "string"} for key in ("message", "status")}
    error = {
        "type": "object",
        "properties": {"code": {"type": "integer"}, **texts, "details": {"type": "array"}},
    }
    schemas["Error"] = {"type": "object", "required": ["error"], "properties": {"error": error}}
    return {"paths": paths, "components": {"schemas": schemas}}


def _methods(resource: Document) -> Iterator[Document]:
    yield from resource.get("methods", {}).values()
    for each in resource.get("resources", {}).values():
        yield from _methods(each)


def _json(schema: Document) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": _with_numbers(schema)}}}


def _with_numbers(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return {"$ref": f"#/components/schemas/{node['$ref']}"}
    if node.get("type") == "any":
        return {}
    if node.get("format") == "int64":
        return {"type": ["string", "integer"]}
    if "enum" in node:
        return {"anyOf": [{"type": "string", "enum": node["enum"]}, {"type": "integer"}]}
    return {key: _with_numbers(value) for key, value in node.items() if key not in ("id", "readOnly")}


def _package(folder: str) -> Callable[[bytes], Document]:
    """Return a reader of a package of Azure's SDK for Python, of one version of its API."""

    def read(text: bytes) -> Document:
        wheel = ZipFile(BytesIO(text))
        paths: dict[str, dict[str, Any]] = {}
        schemas: dict[str, Any] = {}
        for name in wheel.namelist():
            if name.startswith(f"{folder}/operations/_") and name.endswith("_operations.py"):
                for method, path, operation in _operations(ast.parse(wheel.read(name))):
                    paths.setdefault(path, {})[method] = operation
            elif name == f"{folder}/models/_models_py3.py":
                schemas = dict(_models(ast.parse(wheel.read(name))))
        return {"paths": paths, "components": {"schemas": schemas}}

    return read


def _operations(module: ast.Module) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield verb, path and operation of each `build_…_request` and the method that sends it."""
    built: dict[str, tuple[str, str]] = {}
    for function in (node for node in module.body if isinstance(node, ast.FunctionDef)):
        texts = [node.value for node in ast.walk(function) if isinstance(node, ast.Constant)]
        path = next((one for one in texts if isinstance(one, str) and one.startswith("/")), None)
        method = next((one for one in texts if one in ("GET", "PUT", "PATCH", "DELETE", "POST")), None)
        if path and method:
            built[function.name] = (str(method), path)
    for class_ in (node for node in module.body if isinstance(node, ast.ClassDef)):
        for function in (node for node in class_.body if isinstance(node, ast.FunctionDef)):
            for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
                if isinstance(call.func, ast.Name) and call.func.id in built:
                    method, path = built[call.func.id]
                    yield method.lower(), path, _operation(function)


def _operation(function: ast.FunctionDef) -> dict[str, Any]:
    sent, answered, codes = "", "", {"200"}
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            texts = [one.value for one in node.args if isinstance(one, ast.Constant)]
            if node.func.attr == "body" and texts:
                sent = str(texts[-1])
            elif node.func.attr in ("_deserialize", "deserialize") and texts:
                answered = str(texts[0])
        elif isinstance(node, ast.Compare) and isinstance(node.comparators[0], ast.List):
            codes = {ast.unparse(one) for one in node.comparators[0].elts}
    answer = _json({"$ref": answered}) if answered else {}
    responses = {code: {} if code == "204" else answer for code in sorted(codes)}
    body = {"requestBody": _json({"$ref": sent})} if sent else {}
    return {
        "parameters": [{"name": "api-version"}],
        **body,
        "responses": {**responses, "default": _json({"$ref": "Error"})},
    }


def _models(module: ast.Module) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the models by name, as schemas of the keys they have on the wire; their values are anything."""
    own: dict[str, dict[str, Any]] = {"Error": {"type": "object", "required": ["error"]}}
    for class_ in (node for node in module.body if isinstance(node, ast.ClassDef)):
        for node in class_.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_attribute_map":
                own[class_.name] = _shape([each["key"] for each in ast.literal_eval(node.value).values()])
    yield from own.items()


def _shape(keys: Sequence[str]) -> dict[str, Any]:
    inner: dict[str, list[str]] = {}
    for key in keys:
        first, _, rest = key.partition(".")
        inner.setdefault(first, []).extend([rest] if rest else [])
    return {
        "type": "object",
        "properties": {key: _shape(more) if more else {} for key, more in inner.items()},
    }


def _published(kept: Path) -> Published:
    known = json.loads(kept.read_text(encoding="utf-8"))
    source, file, version = (known["source"][key] for key in ("source", "file", "version"))
    reader = _package(file) if "/azure-mgmt-" in source else _discovery if "pypi" in source else _openapi
    return Published(source, file, version, [*known["paths"]], kept, reader, known["beyond"])


PUBLISHED: Final = {
    file.stem: _published(file) for each in _FOLDERS for file in sorted(Path(_ROOT, each).glob("*.json"))
}
"""Name → contract that is kept, as its own file says."""

_PROSE: Final = frozenset({"description", "example", "examples", "summary", "tags", "title"})


def reduced(published: Document, paths: Sequence[str]) -> dict[str, Any]:
    """Return what of an OpenAPI document these paths say and mean; raises ValueError where one is not."""
    for path in paths:
        if path not in published["paths"]:
            raise ValueError(f"it has no {path}: a package may have left out the API version of this folder")
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
        "source": published.source,
        "file": published.file,
        "version": published.version,
        "sha256": hashlib.sha256(text).hexdigest(),
    }
    whole = reduced(published.read(text), published.paths)
    return {"source": source, "beyond": dict(published.beyond), **whole}


def main(name: str, file: str, version: str) -> None:
    """Write a kept contract anew."""
    published = replace(PUBLISHED[name], version=version)
    text = json.dumps(document(published, Path(file).read_bytes()), indent=1)
    published.kept.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
