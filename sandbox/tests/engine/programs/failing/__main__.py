"""Ends in the way its configuration names."""

from __future__ import annotations

import asyncio
import os
import sys

import pulumi
from deeper import blow_up


def late() -> None:
    """Make an output that fails, of which nobody waits for the end."""
    pulumi.Output.from_input(2).apply(lambda _: blow_up())


way = pulumi.Config().require("way")

match way:
    case "exception":
        blow_up()
    case "run-error":
        raise pulumi.RunError("a foreseen mistake")
    case "apply":
        pulumi.Output.from_input(1).apply(lambda _: blow_up())
    case "late-apply":  # beside an output that never is known
        pulumi.Output.from_input(asyncio.get_running_loop().create_future())
        pulumi.Output.from_input(1).apply(lambda _: late())
    case "quiet-exit":
        os._exit(3)
    case "exit-well":
        pulumi.export("done", "yes")
        sys.exit(0)
    case "exit-badly":
        sys.exit(3)
    case "unsupported":
        pulumi.Output.from_input(pulumi.runtime.invoke("pulumi:pulumi:other", {}))
    case _:
        raise AssertionError(way)
