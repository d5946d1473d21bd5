"""What the policies cost: the servicer of the genuine host, asked in this process for all of stack dev."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

_PACK: Final = Path(__file__).resolve().parent.parent / "policies"
_ROUNDS: Final = 20


def report(folder: Path) -> str:
    """Say how many milliseconds of processor a resource costs under all rules: the least of some rounds."""
    sys.path.append(str(_PACK))
    from tests.support.policies import Asked, record_dev

    recorder = record_dev(folder)
    os.environ["PULUMI_CONFIG"] = json.dumps(dict(recorder.config))  # as the CLI does for the host
    asked = Asked.of(recorder)
    rounds = [(_spent(asked.judge_each), _spent(asked.judge_stack)) for _ in range(_ROUNDS)]
    each, at_the_end = (min(spent) / len(asked.requests) for spent in zip(*rounds, strict=True))
    return (
        f"{each + at_the_end:.2f} ms of processor per resource, of {len(asked.requests)}:"
        f" {each:.2f} when it is judged, {at_the_end:.2f} at the end"
    )


def _spent(judge: Callable[[], Any]) -> float:
    began = time.process_time()
    judge()
    return (time.process_time() - began) * 1000
