"""What other packages may use to read stacks at rest, and that it costs nothing until it is asked for."""

import subprocess
import sys

import pulumi_sandbox.engine
import pytest


def test_every_name_of_the_face_is_there_and_no_other():
    names = [name for each in pulumi_sandbox.engine.PUBLIC.values() for name in each]
    assert {"Workspace", "Snapshot", "StackAtRest", "recorded"} <= set(names)
    for name in names:
        assert getattr(pulumi_sandbox.engine, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Journal'"):
        _ = pulumi_sandbox.engine.Journal


_PROGRAM = """
import sys, pulumi_sandbox.engine
loaded = lambda: sum(name.startswith("pulumi_sandbox.engine.") for name in sys.modules)
before = loaded()
pulumi_sandbox.engine.Snapshot
print(before, loaded() > before)
"""


def test_a_part_is_loaded_when_it_is_first_asked_for_and_not_before():
    shown = subprocess.run([sys.executable, "-c", _PROGRAM], check=True, capture_output=True, text=True)
    assert shown.stdout.split() == ["0", "True"]
