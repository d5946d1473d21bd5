"""Records again what the sixty edits are compared with: `python -m tests.operations.review.recording`.

Each stack is brought up on the sandbox's own API server, staging and prod with made-up credentials under a
passphrase; its record is exported, and each edit previewed with the keys. It needs the stand-ins' ports.
"""

from __future__ import annotations

import gzip
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from operations.stack.passphrase import PassphraseCrypter
from operations.stack.yaml_file import load_yaml
from tests.operations.review.edits import EDITS
from tests.support.recorded_stacks import RECORDED, ROOT

PASSPHRASE: Final = "only for tests"
CREDFLEET: Final = Path(sys.executable).with_name("credfleet")
STACKS: Final = ("dev", "staging", "prod")
MADE_UP: Final = {
    "aws": {"accessKeyID": "AKIA-MADE-UP-{}", "secretAccessKey": "made-up-key-of-{}"},
    "azure": {
        "subscriptionID": "00000000-0000-4000-8000-0000000000e1",
        "tenantID": "00000000-0000-4000-8000-0000000000e2",
        "clientID": "00000000-0000-4000-8000-0000000000e3",
        "clientSecret": "made-up-secret-of-{}",
    },
    "gcp": {"type": "service_account", "private_key": "made-up-key-of-{}"},
}
LINKED: Final = (".venv", "Pulumi.yaml", "__main__.py", "components", "operations", "sandbox")


def main() -> None:
    """Record all stacks, or those that are named."""
    for stack in sys.argv[1:] or STACKS:
        _record(stack, Path(f"/tmp/credfleet-recording-{stack}"))


def _record(stack: str, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name in LINKED:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(Path(sys.prefix) if name == ".venv" else ROOT / name)
    limits = shutil.ignore_patterns("config")  # what lies in an environment's cloud already is declared here
    shutil.copytree(ROOT / "policies", folder / "policies", ignore=limits, dirs_exist_ok=True)
    shutil.copytree(ROOT / "stacks" / "dev", folder / "stacks" / "dev", dirs_exist_ok=True)
    shutil.copytree(ROOT / "stacks" / "dev", folder / "stacks" / stack, dirs_exist_ok=True)
    file = folder / f"Pulumi.{stack}.yaml"
    crypter = PassphraseCrypter.new(PASSPHRASE)
    document = opened(stack, crypter)
    file.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    environment = {**os.environ, "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE}
    environment.pop("KUBECONFIG", None)

    def run(*arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        command = [str(CREDFLEET), *arguments]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode not in codes:
            raise SystemExit(f"{arguments}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return done.stdout

    run("sandbox", "up", "--stack", stack, codes=(0, 9))
    words = (shlex.split(line) for line in run("sandbox", "env", "--stack", stack).splitlines())
    environment |= dict(pair.split("=", 1) for verb, pair in words if verb == "export")
    record = json.loads(run("review", "export", "--stack", stack))
    (RECORDED / stack).mkdir(parents=True, exist_ok=True)
    (RECORDED / stack / f"Pulumi.{stack}.yaml").write_text(file.read_text("utf-8"), "utf-8")
    packed = gzip.compress(json.dumps(record, separators=(",", ":")).encode(), mtime=0)
    (RECORDED / stack / "record.json.gz").write_bytes(packed)
    keyed: dict[str, Any] = {}
    for edit in (each for each in EDITS if each.stack == stack):
        file.write_text(yaml.safe_dump(edit.applied(document, crypter.encrypt), sort_keys=False), "utf-8")
        keyed[edit.title] = _steps(folder, environment, stack)
        print(edit.title, len(keyed[edit.title]["steps"]), keyed[edit.title]["failed"], flush=True)  # noqa: T201
    (RECORDED / stack / "keyed.json").write_text(json.dumps(keyed, indent=1) + "\n", "utf-8")
    run("sandbox", "down")


def _steps(folder: Path, environment: dict[str, str], stack: str) -> dict[str, Any]:
    command = ["pulumi", "preview", "--stack", stack, "--json", "--policy-pack", "policies"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    try:
        document = json.loads(done.stdout)
        steps = [[each["op"], each["urn"]] for each in document["steps"] if each["op"] != "same"]
    except (ValueError, KeyError):
        return {"failed": True, "steps": []}
    return {"failed": bool(done.returncode), "steps": sorted(steps)}


def opened(stack: str, crypter: PassphraseCrypter) -> dict[str, Any]:
    """Return a stack's file with made-up credentials under a passphrase, on the sandbox's own services."""
    document: dict[str, Any] = load_yaml(ROOT / f"Pulumi.{stack}.yaml")
    dev: dict[str, Any] = load_yaml(ROOT / "Pulumi.dev.yaml")
    public = PassphraseCrypter.open(
        dev["encryptionsalt"], (ROOT / "stacks/dev/passphrase").read_text().strip()
    )
    config = document["config"]
    for name, entry in config["credfleet:credentials"].items():
        text = public.decrypt(entry["secure"]) if stack == "dev" else _made_up(name, dev, public)
        entry["secure"] = crypter.encrypt(text)
    config["gcp:accessToken"] = {"secure": crypter.encrypt("made-up-token")}
    for key in ("gcp:secretManagerCustomEndpoint", "azure-native:metadataHost"):
        config[key] = dev["config"][key]
    config.setdefault("azure-native:subscriptionId", dev["config"]["azure-native:subscriptionId"])
    config["credfleet:cluster"] = dev["config"]["credfleet:cluster"]
    config["credfleet:pullSecrets"]["hyperfleet"] = dev["config"]["credfleet:pullSecrets"]["hyperfleet"]
    if stack == "prod":  # they are there already, in its cloud
        groups = {"rg-identities": {"location": "westeurope"}, "rg-acme": {"location": "westeurope"}}
        config["credfleet:asoCredentials"]["resourceGroups"] = groups
    return {"encryptionsalt": crypter.salt, "config": config}


def _made_up(name: str, dev: dict[str, Any], public: PassphraseCrypter) -> str:
    if name == "quay-pull":
        return public.decrypt(dev["config"]["credfleet:credentials"]["quay-pull"]["secure"])
    kind = next(each for each in ("azure", "aws", "gcp") if each in name)
    return json.dumps({key: text.format(name) for key, text in MADE_UP[kind].items()})


if __name__ == "__main__":
    main()
