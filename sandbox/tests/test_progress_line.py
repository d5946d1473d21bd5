"""How the progress of a long step is shown on a terminal and in a log."""

import io

import pytest
from pulumi_sandbox.progress_line import ProgressLine, worded
from pulumi_sandbox.services.progress import Step


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("step", "line"),
    [
        (Step("building etcd", 0.2, 270.0), "· building etcd, usually 4:30"),
        (Step("building etcd", 65.4, 270.0), "· building etcd 1:05, usually 4:30"),
        (Step("starting", 3.6), "· starting 4 s"),
        (Step("starting", 0.0), "· starting"),
    ],
)
def test_a_step_is_said_with_its_time_so_far_and_the_usual_one(step: Step, line: str):
    assert worded(step) == line


def test_a_terminal_has_one_line_that_is_gone_at_the_end():
    terminal = Terminal()
    with ProgressLine(terminal) as progress:
        progress(Step("building", 1.0))
        progress(Step("building", 2.0))
    assert "\n" not in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_log_gets_a_line_for_each_step_and_a_sign_of_life_now_and_then():
    log = io.StringIO()
    with ProgressLine(log) as progress:
        for second in range(32):
            progress(Step("building", float(second)))
        progress(Step("starting", 0.0))
    assert log.getvalue().splitlines() == [
        "· building",
        "· building 15 s",
        "· building 30 s",
        "· starting",
    ]
