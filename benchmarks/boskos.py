"""Boskos (`sigs.k8s.io/boskos`), the pool of the Kubernetes project's own tests, built and run as a peer."""

import json
import subprocess
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from pulumi_sandbox.services.build import GoModule, binaries, cache_folder
from pulumi_sandbox.services.ports import LOOPBACK, free_ports
from pulumi_sandbox.services.progress import silent

from benchmarks.flows import Flow
from benchmarks.kept_alive import Access, KeptAlive, Tally, expect
from benchmarks.large_pools import TYPE

_PINNED: Final = "sigs.k8s.io/boskos"
_MODULE: Final = GoModule(
    Path(__file__).with_name("peers") / "boskos",
    "Boskos",
    _PINNED,
    {"boskos": f"{_PINNED}/cmd/boskos"},
    lambda _: {},
)
_READY_SECONDS: Final = 300.0


class BoskosFlow(Flow):
    """Acquire and release; Boskos knows no tenant, so the same one asking again gets another resource."""

    def __init__(self, access: Access, tally: Tally) -> None:
        self._call = KeptAlive(access, tally)
        self._held: dict[str, str] = {}

    def claim(self, tenant: str, number: int) -> None:  # noqa: ARG002 - everybody asks the same server
        """Acquire a resource; the server gives up after four lost races of its own, so ask it again then."""
        answer = self._acquire(tenant)
        while answer[0] == 500:
            answer = self._acquire(tenant)
        self._held[tenant] = expect(answer, 200)["name"]

    def release(self, tenant: str) -> None:
        """Release it."""
        expect(self._post("release", name=self._held.pop(tenant), dest="free", owner=tenant), 200)

    def _acquire(self, owner: str) -> tuple[int, Any]:
        return self._post("acquire", type=TYPE, state="free", dest="busy", owner=owner)

    def _post(self, what: str, **query: str) -> tuple[int, Any]:
        return self._call("POST", f"/{what}?{urlencode(query)}")


def build() -> Path:
    """Build the server, once per machine and version; takes minutes the first time."""
    return binaries(silent, cache_folder("credfleet").with_name("boskos"), _MODULE) / "boskos"


@contextmanager
def serving(kubeconfig: Path, namespace: str, members: int, folder: Path) -> Generator[str]:
    """Run a Boskos with this many resources on the API server; return its address."""
    import yaml

    with closing(KeptAlive(Access.of(kubeconfig), Tally())) as api:
        for definition in yaml.safe_load_all(_definitions().read_text(encoding="utf-8")):
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            expect(api("POST", path, definition), 201, 409)
        expect(api("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}), 201)
    resource = {"type": TYPE, "state": "free", "names": [f"{TYPE}-{n:05d}" for n in range(members)]}
    config = folder / f"{namespace}.yaml"
    config.write_text(json.dumps({"resources": [resource]}), encoding="utf-8")
    port, health, metrics, pprof = free_ports(4)
    command = [
        str(build()),
        f"--kubeconfig={kubeconfig}",
        f"--namespace={namespace}",
        f"--config={config}",
        f"--port={port}",
        f"--health-port={health}",
        f"--metrics-port={metrics}",
        f"--pprof-port={pprof}",
        "--log-level=error",
    ]
    with (
        (folder / f"{namespace}.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as server,
    ):
        try:
            address = f"http://{LOOPBACK}:{port}"
            _wait_until_ready(address, server, Path(log.name))
            yield address
        finally:
            server.terminate()


def _definitions() -> Path:
    """Find the custom resources in the module, which the build has downloaded."""
    build()
    asked = ["go", "list", "-m", "-f", "{{.Dir}}", _PINNED]
    answer = subprocess.run(asked, cwd=_MODULE.folder, capture_output=True, text=True, check=True)
    return Path(answer.stdout.strip()) / "deployments" / "base" / "crd.yaml"


def _wait_until_ready(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until it answers, which it does once it has made all its resources."""
    deadline = time.monotonic() + _READY_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        with closing(KeptAlive(Access(address), Tally())) as call, suppress(OSError):
            call("GET", "/")
            return
        time.sleep(0.1)
    raise SystemExit(f"Boskos does not serve:\n{log.read_text(encoding='utf-8')[-2000:]}")
