"""What the engine asks of the program while all its threads wait for the engine."""

import os

import pytest

from tests.support.fleet_project import FleetProject

THREADS_PER_WORKER = 4
WORKERS_PER_CORE = 4
"""Of the genuine language host and the CLI; a program has as many threads for all its registrations."""


@pytest.mark.parametrize(
    "parallel",
    [
        pytest.param(WORKERS_PER_CORE * (os.cpu_count() or 1), id="default"),
        pytest.param(1, id="one", marks=pytest.mark.life),
    ],
)
def test_preview_of_more_new_members_than_threads_ends(project: FleetProject, parallel: int) -> None:
    project.configure(
        credentials={"aws": '{"accessKeyID":"AKIA","secretAccessKey":"sentinel-1"}'},
        pool={
            "members": {
                f"aws-{n}": {"type": "aws", "accountId": f"{n:012}", "credentialsFrom": "aws"}
                for n in range(THREADS_PER_WORKER * parallel + 8)
            }
        },
    )

    preview = project.pulumi("preview", "--parallel", str(parallel))

    assert "account-pool-seal create" in preview.quiet().out
