"""Refresh and destroy that run the program, with a state and without one."""

from __future__ import annotations

import json

import pytest

from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.support.fleet_project import FleetProject

PULL_SECRET = json.dumps({"auths": {"quay.io": {"auth": "dXNlcjpzZW50aW5lbA=="}}})
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


@pytest.mark.life
def test_refresh_and_destroy_that_run_the_program_end_well(project: FleetProject, google: str) -> None:
    acme = tenant_of(project, "acme")
    acme["accounts"]["aws"]["deliverTo"] = "copy"
    project.configure(
        credentials={**CREDENTIALS, "quay": PULL_SECRET, "db": '{"type":"db","password":"sentinel-db"}'},
        tenants={"acme": acme},
        pool=pool_of(1, 2, 3),
        services={"db": {"namespace": acme["namespace"], "bindings": {"app": {}}, "credentialsFrom": "db"}},
        further={
            "gcp:secretManagerCustomEndpoint": google,
            "gcp:accessToken": "any",
            "gcp:project": "test-project",
            "credfleet:pullSecrets": {
                "namespaceTemplate": f"{project.pool}-{{id}}",
                "clusters": {
                    "cls-1": {
                        "name": "east",
                        "generation": 1,
                        "project": "test-project",
                        "pullSecretFrom": "quay",
                        "adapters": dict.fromkeys(("validation", "dns", "placement"), "True"),
                    }
                },
            },
        },
    )

    project.pulumi("refresh", "--run-program", "--yes").quiet()
    project.pulumi("up", "--yes", "--skip-preview").quiet()
    project.pulumi("refresh", "--run-program", "--yes").quiet()
    assert UNKNOWN not in project.pulumi("stack", "export").out
    for _ in range(2):
        project.pulumi("destroy", "--run-program", "--yes").quiet()
