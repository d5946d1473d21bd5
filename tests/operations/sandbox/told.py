"""What the Pulumi CLI 3.274.1 told of the program and the policy pack in `recorded`, by `--event-log`.

Events of severity `debug` and summaries of policies are left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from pulumi.automation._cmd import CommandResult
from pulumi.automation.errors import CommandError, create_command_error
from pulumi.automation.events import EngineEvent

_RECORDED: Final = Path(__file__).with_name("recorded")
APPLE: Final = "urn:pulumi:dev::mine::pulumi-python:dynamic:Resource::apple"
LOCKED: Final = """\
error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or \
delete the lock file with `pulumi cancel`.
  file:///state/.pulumi/locks/organization/mine/dev/x.json: created by me@here (pid 7) at 2026-11-27T06:00:00Z
"""


def raw(name: str) -> list[dict[str, Any]]:
    """Return the events of one command, as its log has them."""
    return [json.loads(line) for line in (_RECORDED / f"{name}.jsonl").read_text("utf-8").splitlines()]


def events(name: str) -> list[EngineEvent]:
    """Return the events of one command, as the Automation API gives them."""
    return [EngineEvent.from_json(each) for each in raw(name)]


def refusal(stderr: str) -> CommandError:
    """Return what the Automation API raises for a command that failed so."""
    return create_command_error(CommandResult(stdout="", stderr=stderr, code=255))
