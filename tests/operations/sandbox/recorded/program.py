"""The program of which the events beside it were told."""

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, Resource, ResourceProvider, UpdateResult

CONFIG = pulumi.Config()
STAGE = CONFIG.get("stage") or "one"


class Provider(ResourceProvider):
    def create(self, props):
        if props["colour"] == "none":
            raise ValueError("no such colour")
        return CreateResult("id-of-" + props["colour"], props)

    def diff(self, _id, old, new):
        kind = old.get("kind") != new.get("kind")
        changes = kind or old.get("colour") != new.get("colour")
        return DiffResult(changes=changes, replaces=["kind"] if kind else [])

    def update(self, _id, _old, new):
        return UpdateResult(new)


class Thing(Resource):
    def __init__(self, name, colour, kind="fruit"):
        token = pulumi.Output.secret("s3cret")
        super().__init__(Provider(), name, {"colour": colour, "kind": kind, "token": token})


pulumi.log.info("hello from the program")
Thing("apple", "green" if STAGE == "one" else "red", "forbidden" if STAGE == "denied" else "fruit")
Thing("pear", "yellow", "fruit" if STAGE == "one" else "tree")
if STAGE in ("one",):
    Thing("plum", "blue")
if STAGE == "failing":
    pulumi.log.warn("something will fail")
    Thing("fig", "none")
pulumi.export("stage", STAGE)
