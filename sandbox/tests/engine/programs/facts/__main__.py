"""Touches much of what a program can do; the tests look at what became of it."""

import os
import sys
from typing import Any

import pulumi
from things import Thing

config = pulumi.Config()


class Shelf(pulumi.ComponentResource):
    """A component with one thing on it."""

    thing: pulumi.Output[Any]

    def __init__(self, name: str) -> None:
        super().__init__("test:index:Shelf", name)
        self.thing = pulumi.Output.from_input(
            Thing(
                f"{name}-thing",
                {"size": config.require_int("size"), "word": config.require_secret("word"), "nothing": None},
                pulumi.ResourceOptions(parent=self),
            ).made
        )
        self.register_outputs({"thing": self.thing})


shelf = Shelf("shelf")
second = Thing("second", {"size": 2, "from": shelf.thing, "trouble": config.get("trouble")})

sys.stdout.write("said on stdout\n")
sys.stderr.write("said on stderr\n")
pulumi.log.debug("said in debug")
pulumi.log.warn("said as a warning")
second.made.apply(lambda made: pulumi.log.info(f"second was made {made}"))

pulumi.export("made", shelf.thing)
pulumi.export("kind", second.kind)
pulumi.export("word", config.require_secret("word"))
pulumi.export("nested", {"list": [1, {"word": config.require_secret("word")}]})
pulumi.export("types", {"object": config.require_object("object"), "flag": config.require("flag")})
pulumi.export(
    "names",
    [pulumi.get_organization(), pulumi.get_project(), pulumi.get_stack(), os.path.basename(os.getcwd())],
)
pulumi.export("variable", os.environ["PULUMI_CONFIG"].count('"test:word"'))
pulumi.export("passphrase", os.environ.get("PULUMI_CONFIG_PASSPHRASE", "not handed on"))
