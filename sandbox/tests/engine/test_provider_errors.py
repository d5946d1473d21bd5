"""How a failure in a dynamic provider reads."""

import pytest
from pulumi_sandbox.engine.plugins.plugin_provider import without_traceback

HOST = 'Traceback (most recent call last):\n  File "…/pulumi/dynamic/__main__.py", line 84, in wrapper\n'


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        pytest.param(
            f"{HOST}pulumi.errors.RunError: pool p: it is empty\n→ add an account\n",
            "pool p: it is empty\n→ add an account",
            id="what was meant for a person stands alone",
        ),
        pytest.param(
            "pulumi.errors.RunError: pool p: it is empty\n→ add an account\n",
            "pool p: it is empty\n→ add an account",
            id="a host that was told to leave out the frames",
        ),
        pytest.param(f"{HOST}ValueError: 7\n", f"{HOST}ValueError: 7\n", id="a defect keeps its traceback"),
        pytest.param("the quota is used up", "the quota is used up", id="other providers' words stay"),
    ],
)
def test_an_error_of_a_provider_is_shown_without_the_frames_that_help_nobody(said: str, shown: str):
    assert without_traceback(said) == shown
