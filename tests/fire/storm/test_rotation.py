"""Keys are rotated while stacks use them, and all of it is killed: watched from outside, no used key is dead.

At full size, where CREDFLEET_PROVE is set, 50 accounts, 40 stacks, and an API server that is killed as well.
"""

from __future__ import annotations

import json
import random
import secrets
import subprocess
import sys
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.parts import ADMIN, Part

from sandbox.tests.support.cluster import client_for
from tests.fire.conftest import restarted
from tests.fire.storm import cloud
from tests.fire.storm.history import ALIVE, Change, Keys, changes_in
from tests.fire.storm.test_storm import looked_and_updated
from tests.support.fleet_project import CREDFLEET, FleetProject
from tests.support.members import Members
from tests.support.proving import counted, tried
from tests.support.secrets import Secrets
from tests.support.watching import watched

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

STACKS, PAIRS, ACCOUNTS = counted(3, 40), counted(1, 8), counted(5, 50)
KILLS, SERVER_KILLS, SIDE_BY_SIDE = counted(4, 60), counted(0, 4), counted(3, 6)
NAMES: Final = [f"account-{number}" for number in range(ACCOUNTS)]
VERBS: Final = ([], [], ["--complete"], ["--complete"], ["--abort"], ["--roll-back"])
WRITES = 40
"""Of the state, by an update that nothing kills: about as many."""

MADE: Final = ("copy", "read", "push", "service", "binding", "environment", "app")
MADE_OF_AN_ACCOUNT: Final = """
credfleet:tenants:
  NAME: {namespace: SPACE, accounts: {aws: {type: aws, deliverTo: copy}}}
credfleet:secretStores:
  providers:
    accounts:
      kind: Kubernetes
      spec: {remoteNamespace: POOL, auth: &own {serviceAccount: {name: default, namespace: VAULT}}}
    vault: {kind: Kubernetes, spec: {remoteNamespace: VAULT, auth: *own}}
  stores:
    NAME-in: {cluster: true, providerRef: accounts, conditions: [{namespaces: [SPACE]}]}
    NAME-out: {cluster: true, providerRef: vault, conditions: [{namespaces: [SPACE]}]}
  reads:
    NAME: {namespace: SPACE, store: NAME-in, data: {key: {account: NAME/aws, key: key}}}
  pushes:
    NAME:
      namespace: SPACE
      store: NAME-out
      deletionPolicy: Delete
      data: {SPACE: {account: NAME/aws, key: key, property: key}}
credfleet:services:
  instances:
    NAME-db: {namespace: SPACE, credentialsFrom: {account: NAME/aws}, bindings: {NAME-app: {}}}
  apps:
    NAME: {namespace: SPACE, bindings: [NAME-db/NAME-app]}
"""


def key(account: str, number: int) -> str:
    return f"sentinel-{account}-{number}"


def alive(revision: int, *keys: int) -> Change:
    text = " ".join(key("account-1", each) for each in keys)
    return Change(revision, "configmaps", "cloud/account-1", {"data": {ALIVE: text}})


def uses(revision: int, number: int, name: str = "copy") -> Change:
    text = json.dumps({"credential": key("account-1", number)})
    return Change(revision, "secrets", f"acme/{name}", {"data": {"x": b64encode(text.encode()).decode()}})


HISTORIES: Final[Mapping[str, tuple[Sequence[Change], int]]] = {
    "all is well": ([alive(1, 1), uses(2, 1), alive(3, 1, 2), uses(4, 2), alive(5, 2)], 0),
    "revoked while it is used": ([alive(1, 1), uses(2, 1), alive(3, 2)], 1),
    "used after it was revoked": ([alive(1, 1), alive(2, 2), uses(3, 1)], 1),
    "only kept beside an account": ([alive(1, 1), uses(2, 1, "account-1.other-key"), alive(3, 2)], 0),
}


@pytest.mark.parametrize(("changes", "wrong"), HISTORIES.values(), ids=HISTORIES)
def test_use_of_a_dead_key_is_seen_in_the_order_of_the_changes(changes: Sequence[Change], wrong: int) -> None:
    watched = [[one for one in changes if one.kind == kind] for kind in ("secrets", "configmaps")]
    assert len(Keys().replay(*watched).wrong) == wrong


def joined(parts: Sequence[Any]) -> Any:
    """Join maps, and the maps in them."""
    if not all(isinstance(each, Mapping) for each in parts):
        return parts[-1]
    names = dict.fromkeys(name for each in parts for name in each)
    return {name: joined([each[name] for each in parts if name in each]) for name in names}


@dataclass
class Storm:
    """Stacks that use accounts, each one of its own, some one that a neighbour uses as well."""

    pool: FleetProject
    stacks: Sequence[FleetProject]
    chance: random.Random
    ended: Counter[str] = field(default_factory=Counter[str])

    def configure(self) -> None:
        """Have all that follows an account made of each: a copy, a read, a push, a service and its app."""
        for number, stack in enumerate(self.stacks):
            names = [f"own{number}", f"pair{number // 2}"][: 1 + (number // 2 < PAIRS)]
            parts = [
                yaml.safe_load(
                    MADE_OF_AN_ACCOUNT.replace("NAME", name)
                    .replace("SPACE", f"{stack.pool}-{number}-{name}")
                    .replace("POOL", stack.pool)
                    .replace("VAULT", f"{stack.pool}-vault")
                )
                for name in names
            ]
            pool = {"from": {"namespace": stack.pool}}
            stack.configure(credentials={}, tenants={}, pool=pool, further=joined(parts))

    def strike(self, longest: float) -> None:
        """Update a stack or rotate some accounts, and kill that half of the times."""
        within = self.chance.uniform(0, longest) if self.chance.random() < 0.5 else 1e6
        if self.chance.random() < 0.7:
            what, writes = "updates", self.chance.randrange(1, WRITES) if within < 1e6 else 1 << 30
            ran = self.chance.choice(self.stacks).up_within(writes, within)
            code = ran.quiet(ran.code).code
        else:
            what, accounts = "rotations", self.chance.sample(NAMES, min(5, ACCOUNTS))
            code = self.rotate(*accounts, *self.chance.choice(VERBS), within=within)
        self.ended[f"{what} that {'were killed' if code < 0 else 'ended'}"] += 1

    def rotate(self, *words: str, within: float | None = None) -> int:
        where = ("-n", self.pool.pool, "--kubeconfig", str(self.pool.kubeconfig), "--stack", self.pool.stack)
        command = [CREDFLEET, "pool", "rotate", *words, *where, "--yes"]
        folder, environment = self.pool.folder, self.pool.environment
        with (
            (folder / "rotations.txt").open("a") as to,
            subprocess.Popen(command, cwd=folder, env=environment, stdout=to, stderr=to) as run,
        ):
            try:
                return run.wait(within)
            except subprocess.TimeoutExpired:
                run.kill()
                return run.wait()

    @property
    def killed(self) -> int:
        return sum(count for what, count in self.ended.items() if what.endswith("killed"))

    def rage(self, plane: ControlPlane, longest: float) -> None:
        """Strike until so much was killed; the API server goes and comes meanwhile."""
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            for round_ in range(SERVER_KILLS + 1):
                while self.killed < KILLS * (round_ + 1) / (SERVER_KILLS + 1):
                    striking = [pool.submit(self.strike, longest) for _ in range(2 * SIDE_BY_SIDE)]
                    for each in striking[: None if round_ == SERVER_KILLS else SIDE_BY_SIDE]:
                        each.result()
                if round_ < SERVER_KILLS:  # by this thread, with which it would end
                    plane.kill(Part.API_SERVER)
                    restarted(plane)
                    self.ended["kills of the API server"] += 1

    def settle(self) -> None:
        """End every rotation with a new key, and kill nothing any more."""
        self.rotate("--type", "aws", "--complete")
        assert self.rotate("--type", "aws") == 0
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            for ran in pool.map(looked_and_updated, self.stacks):
                ran.quiet()
        assert self.rotate("--type", "aws", "--complete") == 0


def made(admin: DynamicClient, pool: str) -> None:
    """Have a cloud that has the accounts' keys, and a vault, whose login reads and writes for all stores."""
    for each in ("cloud", "vault"):
        body = {"metadata": {"name": f"{pool}-{each}"}}
        admin.resources.get(api_version="v1", kind="Namespace").create(body=body)
    clouds = admin.resources.get(api_version="v1", kind="ConfigMap")
    for name in NAMES:
        data = {ALIVE: key(name, 1), "made": "1"}
        clouds.create(namespace=f"{pool}-cloud", body={"metadata": {"name": name}, "data": data})
    group = "rbac.authorization.k8s.io"
    subject = {"kind": "Group", "name": f"system:serviceaccounts:{pool}-vault", "apiGroup": group}
    role = {"kind": "ClusterRole", "name": "edit", "apiGroup": group}
    body = {"metadata": {"name": f"{pool}-stores"}, "subjects": [subject], "roleRef": role}
    admin.resources.get(api_version=f"{group}/v1", kind="ClusterRoleBinding").create(body=body)


@pytest.mark.life
# CPython 3.11 leaves a TLS socket to the garbage when its peer is killed between connection and handshake.
@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
def test_no_secret_has_a_dead_key_at_any_instant_while_keys_are_rotated_and_all_is_killed(
    tmp_path: Path, plane: ControlPlane
) -> None:
    seed = random.randrange(1 << 32)
    kubeconfig = plane.kubeconfig(ADMIN.name)
    pool = FleetProject.make(tmp_path / "pool", kubeconfig, f"t{secrets.token_hex(4)}")
    members = {
        name: {"type": "aws", "accountId": f"{number:012}", "credentialsFrom": name}
        for number, name in enumerate(NAMES)
    }
    programs = {"aws": [sys.executable, cloud.__file__, f"{pool.pool}-cloud"]}
    declared = {"members": members, "keys": programs, "admissionPolicy": True}
    credentials = {name: json.dumps({"key": key(name, 1)}) for name in NAMES}
    pool.configure(credentials=credentials, tenants={}, pool=declared)
    stacks = [pool.consumer(tmp_path / f"team-{number}") for number in range(STACKS)]
    storm = Storm(pool, stacks, random.Random(seed))
    storm.configure()
    seen = tmp_path / "seen"
    seen.mkdir()
    with client_for(kubeconfig, tmp_path / "discovered.json") as admin:
        with watched(pool, seen, Members(admin, pool.pool), admin, ""):
            made(admin, pool.pool)
            pool.up().quiet()
            began = time.monotonic()
            stacks[0].up().quiet()
            storm.rage(plane, longest=1.5 * (time.monotonic() - began))
            storm.settle()
        names = Secrets(admin, pool.pool).names()

    keys = Keys().replay(*(changes_in(seen / kind) for kind in ("secrets", "configmaps")))
    assert keys.wrong == [], f"seed {seed}"
    assert not [name for name in names if name.endswith(".other-key")]
    assert {name: len(living) for name, living in keys.alive.items()} == dict.fromkeys(NAMES, 1)
    used = Counter(one for held in keys.held.values() for one in held)
    assert used.keys() == set[str]().union(*keys.alive.values())
    assert sum(used.values()) == ACCOUNTS + (STACKS + 2 * PAIRS) * len(MADE), used
    for each in (stacks[0], pool):
        each.preview("--refresh", "--expect-no-changes").quiet()
    for what, count in storm.ended.items():
        tried(what, count)
    tried("keys that were revoked", keys.revoked)
    tried("changes of a key in a Secret that uses it", keys.changed)
