"""Declares the resources that `program.json` beside it names: those of one moment of a life."""

import json
from pathlib import Path
from typing import Any

import pulumi
from pulumi.dynamic import Resource
from things import ThingProvider

HERE = Path(__file__).parent


class Thing(Resource, module="test", name="Thing"):
    """What the provider makes; of_NAME and fixed_of_NAME are what it was told of others."""

    made: pulumi.Output[str]

    def __init__(self, name: str, inputs: dict[str, Any], opts: pulumi.ResourceOptions) -> None:
        super().__init__(ThingProvider(), name, {"name": None, "made": None, **inputs}, opts)


class Group(pulumi.ComponentResource):
    """A component that others have for a parent."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions) -> None:
        super().__init__("test:index:Component", name, {}, opts)
        self.register_outputs({})


there: dict[str, Any] = {}
for spec in json.loads((HERE / "program.json").read_text(encoding="utf-8")):
    opts = pulumi.ResourceOptions(
        parent=there.get(spec["parent"]),
        depends_on=[there[name] for name in spec["depends_on"]],
        protect=spec["is_protected"],
        retain_on_delete=spec["is_retained"],
        delete_before_replace=spec["delete_first"],
        ignore_changes=["color"] if spec["ignores_color"] else None,
        replace_on_changes=["color"] if spec["replaces_on_color"] else None,
        replace_with=[there[spec["replace_with"]]] if spec["replace_with"] else None,
        aliases=[pulumi.Alias(name=spec["former"])] if spec["former"] else None,
    )
    if spec["is_component"]:
        there[spec["name"]] = Group(spec["name"], opts)
        continue
    inputs: dict[str, Any] = {key: spec[key] for key in ("color", "fixed")}
    inputs |= {"world": str(HERE / "world"), "logical": spec["name"]}
    inputs |= {f"of_{name}": there[name].made for name in spec["uses"]}
    inputs |= {f"fixed_of_{name}": there[name].made for name in spec["fixed_uses"]}
    if spec["password"]:
        inputs["password"] = pulumi.Output.secret(spec["password"])
    if spec["is_exclusive"]:
        inputs["exclusive"] = True
    there[spec["name"]] = Thing(spec["name"], inputs, opts)
