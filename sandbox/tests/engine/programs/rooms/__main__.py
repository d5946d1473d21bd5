"""A component package: a room, with a chair in it."""

import json
import sys
from typing import Any

import pulumi
from pulumi.provider import ConstructResult, Provider, main

_ROOM = {"isComponent": True, "properties": {"size": {"type": "number"}}}


class Room(pulumi.ComponentResource):
    """Its size is its output."""

    def __init__(self, name: str, inputs: Any, opts: pulumi.ResourceOptions | None) -> None:
        super().__init__("rooms:index:Room", name, {"size": inputs.get("size")}, opts)
        chair = pulumi.ComponentResource(
            "rooms:index:Chair",
            f"{name}-chair",
            {"colour": inputs.get("colour")},
            pulumi.ResourceOptions(parent=self),
        )
        self.size = pulumi.Output.all(chair.urn, inputs.get("size")).apply(lambda known: known[1])
        self.register_outputs({"size": self.size})


class Rooms(Provider):
    """Constructs rooms."""

    def __init__(self) -> None:
        super().__init__("1.0.0", json.dumps({"name": "rooms", "resources": {"rooms:index:Room": _ROOM}}))

    def construct(
        self, name: str, resource_type: str, inputs: Any, options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        """Construct a room; one of no size is refused, and one that is too big falls down."""
        del resource_type
        if inputs.get("size") == 0:
            raise pulumi.InputPropertyError("size", "it is no room")
        if inputs.get("size") == 1000:
            raise pulumi.RunError("the room fell down")
        room = Room(name, inputs, options)
        return ConstructResult(room.urn, {"size": room.size, "colour": inputs.get("colour")})


main(Rooms(), sys.argv[1:])
