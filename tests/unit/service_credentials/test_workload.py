"""Where a container's bindings are mounted, and which root of its own is none to mount them below.

It does not prove that the API server takes what is applied: `tests/dynamic/test_workload_binding.py` does.
"""

from typing import Any

from components.service_credentials.workload import unfit
from tests.support.cases import tabled

ROOT = "SERVICE_BINDING_ROOT"
OTHER: dict[str, Any] = {"name": "other", "env": [{"name": ROOT, "value": "none"}]}


def deployment(*env: dict[str, Any]) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "app", "env": [*env]}, OTHER]}}
    metadata = {"name": "shop", "namespace": "acme", "uid": "u"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"template": template},
    }


@tabled("own")
def test_a_root_that_nobody_could_mount_below_is_refused_and_never_reset(own: dict[str, Any]) -> None:
    live = deployment({"name": ROOT, **own})
    problem = unfit(live, ["app"], takes_files=True)
    assert problem is not None
    assert f"container app sets {ROOT}" in problem.problem
    assert unfit(live, ["app"], takes_files=False) is None
