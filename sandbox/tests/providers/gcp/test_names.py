"""Which names and ids of Google's resources are read and refused."""

import pytest
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.providers.gcp import names


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("projects/p/secrets/s", ("p", "s")),
        ("s", ("default", "s")),
    ],
)
def test_a_secret_is_named_with_or_without_its_project(name: str, parts: tuple[str, str]):
    assert names.secret_parts(name, "default") == parts


@pytest.mark.parametrize("name", ["projects/p/secrets/s/versions/1", "a/b", ""])
def test_other_names_are_refused(name: str):
    with pytest.raises(SandboxError, match="projects/PROJECT/secrets/SECRET"):
        names.secret_parts(name, "default")


@pytest.mark.parametrize(
    ("given", "same"),
    [
        ("projects/p/secrets/s", True),
        ("s", True),
        ("projects/q/secrets/s", False),
        ("t", False),
        (None, False),
    ],
)
def test_a_name_without_a_project_is_the_recorded_one(given: str | None, same: bool):
    assert names.same_secret("projects/p/secrets/s", given) is same
