"""Tells which edition of each of its parts it met; where it says by whom, that is the parent of a process."""

import os
from pathlib import Path

import pulumi
from acting import Acting
from room import Room

WORD = "first"

shop: pulumi.Output[dict[str, str]] = pulumi.Output.from_input(
    pulumi.runtime.invoke_async("shop:index:told", {})
)

pulumi.export("program", f"{WORD} by {Path(f'/proc/{os.getppid()}/cmdline').read_text()}")
pulumi.export("room", Room("room").word)
pulumi.export("acting", Acting("acting").word)
pulumi.export("shop", shop.apply(lambda told: told["word"]))
pulumi.export("configuration", pulumi.Config().require("word"))
pulumi.export("variable", os.environ["PULUMI_WORD"])
pulumi.export("shell", os.environ["WORD"])
