"""The embedded engine against the raw calls it cannot do without, and the dev stack as a person meets it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.users import ADMIN

from benchmarks.stopwatch import Figure, command_time, timed
from operations.sandbox import existing

SECRETS = 200
PROJECT = Path(__file__).resolve().parent.parent
CREDFLEET = Path(sys.executable).with_name("credfleet")
PROGRAM = Path(__file__).with_name("programs") / "secrets"
STACK = "bench"

RAW = f"{SECRETS} Secrets created by hand, one after the other on one connection"
IMPORT = [sys.executable, "-c", "import components.fleet"]
PYTHON = "an interpreter that starts and ends"


def measure(plane: ControlPlane, folder: Path) -> list[Figure]:
    """Measure everything once, in one run on one API server."""
    kubeconfig = plane.kubeconfig(ADMIN.name)
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "PULUMI_CONFIG_PASSPHRASE": "benchmark"}
    return [
        Figure(RAW, _raw_creates(kubeconfig)),
        *_secrets_program(folder / "secrets", environment),
        Figure(PYTHON, command_time([sys.executable, "-c", ""], PROJECT, environment)),
        Figure("import of the program", command_time(IMPORT, PROJECT, environment), PYTHON),
        *_dev_stack(folder / "dev", environment),
    ]


def _raw_creates(kubeconfig: Path) -> float:
    from kubernetes import config
    from kubernetes.client import CoreV1Api, V1Namespace, V1ObjectMeta, V1Secret

    with config.new_client_from_config(str(kubeconfig)) as client:
        api = CoreV1Api(client)
        api.create_namespace(V1Namespace(metadata=V1ObjectMeta(name="by-hand")))

        def create() -> None:
            for number in range(SECRETS):
                secret = V1Secret(metadata=V1ObjectMeta(name=f"secret-{number}"), data={"key": "dmFsdWU="})
                api.create_namespaced_secret("by-hand", secret)

        return timed(create)


def _secrets_program(folder: Path, environment: dict[str, str]) -> list[Figure]:
    shutil.copytree(PROGRAM, folder)
    config = f"config:\n  credfleet:cluster: {{}}\n  secrets:count: {SECRETS}\n"
    (folder / f"Pulumi.{STACK}.yaml").write_text(config, encoding="utf-8")
    up = [CREDFLEET, "sandbox", "up", "--stack", STACK, "--kubeconfig", environment["KUBECONFIG"], "--yes"]
    return [
        Figure(f"up of {SECRETS} Secrets{change}, whole process", command_time(up, folder, environment), RAW)
        for change in ("", ", no change")
    ]


def _dev_stack(folder: Path, environment: dict[str, str]) -> list[Figure]:
    files = subprocess.run(
        ["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in filter(None, files):
        if (PROJECT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROJECT / name, folder / name)
    (folder / ".venv").symlink_to(Path(sys.prefix))
    environment = {name: value for name, value in environment.items() if name != "PULUMI_CONFIG_PASSPHRASE"}
    own = ["--kubeconfig", environment["KUBECONFIG"], "--yes"]
    existing.bring_kinds(Path(environment["KUBECONFIG"]))
    existing.bring(PROJECT / "stacks" / "dev" / "existing.yaml", Path(environment["KUBECONFIG"]))

    def run(verb: str) -> float:
        return command_time([CREDFLEET, "sandbox", verb, *own], folder, environment)

    try:
        return [
            Figure("preview of the dev stack, new", run("preview"), PYTHON),
            Figure("first up of the dev stack", run("up"), PYTHON),
            Figure("second up of the dev stack, no change", run("up"), PYTHON),
        ]
    finally:
        command_time([CREDFLEET, "sandbox", "down"], folder, environment)
