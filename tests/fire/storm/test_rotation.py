"""Keys are rotated while stacks use them, and all of it is killed: watched from outside, no used key is dead.

At full size, where CREDFLEET_PROVE is set, 50 accounts, 40 stacks, and an API server that is killed as well.
"""

from __future__ import annotations

import json
import math
import random
import secrets
import sys
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
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
from tests.fire.storm.test_storm import LONGEST, WRITES, Storm, updated
from tests.support.fleet_project import FleetProject
from tests.support.members import Members
from tests.support.proving import PROVES, counted, tried
from tests.support.secrets import Secrets
from tests.support.watching import watched

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

STACKS, PAIRS, ACCOUNTS, KILLS = counted(3, 40), counted(1, 8), counted(5, 50), counted(3, 60)
NAMES: Final = [f"account-{number}" for number in range(ACCOUNTS)]
VERBS: Final = ([], [], ["--complete"], ["--complete"], ["--abort"], ["--roll-back"])
MADE: Final = ("copy", "read", "push", "service", "binding", "environment", "app")
"""Which Secrets a stack makes of an account."""


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


class KeyStorm(Storm):
    """Each stack has an account of its own, some share one with a neighbour; their keys are rotated."""

    plane: ControlPlane

    def configure(self, number: int, *, whole: bool) -> None:  # noqa: ARG002 - it always wants all
        """Have all that follows an account made of each: a copy, a read, a push, a service and its app."""
        pool, names = self.pool.pool, [f"own{number}", f"pair{number // 2}"][: 1 + (number // 2 < PAIRS)]
        spaces = {name: self.namespace(number, name) for name in names}

        def each(named: str, text: str) -> dict[str, Any]:
            return {
                named.replace("NAME", name): yaml.safe_load(
                    text.replace("NAME", name).replace("SPACE", space)
                )
                for name, space in spaces.items()
            }

        login = {"serviceAccount": {"name": "default", "namespace": f"{pool}-vault"}}
        shared = {"cluster": True, "conditions": [{"namespaces": [*spaces.values()]}]}
        places = {"accounts": pool, "vault": f"{pool}-vault"}
        account = "{account: NAME/aws, key: key"
        stores = {
            "providers": {
                name: {"kind": "Kubernetes", "spec": {"remoteNamespace": place, "auth": login}}
                for name, place in places.items()
            },
            "stores": {name: {**shared, "providerRef": name} for name in places},
            "reads": each("NAME", f"{{namespace: SPACE, store: accounts, data: {{key: {account}}}}}}}"),
            "pushes": each(
                "NAME", f"{{namespace: SPACE, store: vault, data: {{SPACE: {account}, property: key}}}}}}"
            ),
        }
        db = "{namespace: SPACE, credentialsFrom: {account: NAME/aws}, bindings: {NAME-app: {}}}"
        apps = each("NAME", "{namespace: SPACE, bindings: [NAME-db/NAME-app]}")
        tenants = each("NAME", "{namespace: SPACE, accounts: {aws: {type: aws, deliverTo: copy}}}")
        services = {"instances": each("NAME-db", db), "apps": apps}
        further = {"credfleet:secretStores": stores, "credfleet:services": services}
        elsewhere = {"from": {"namespace": pool}}
        self.stacks[number].configure(credentials={}, tenants=tenants, pool=elsewhere, further=further)

    def strikes(self, longest: float) -> Iterator[Callable[[], int]]:
        """Yield updates, and rotations beside them; half of them are killed."""
        for stack in self.stacks:
            death = (self.chance.randrange(1, WRITES), self.chance.uniform(0, longest))
            yield partial(updated, stack, *self.chance.choice([death, (1 << 30, math.inf)]))
        for _ in range(STACKS // 2):
            words = [*self.chance.sample(NAMES, 5), *self.chance.choice(VERBS)]
            within = self.chance.choice([self.chance.uniform(0, longest), None])
            yield partial(self.operate, "rotate", *words, within=within)

    def disturb(self, begun: Sequence[Future[int]]) -> None:
        """Kill the API server twice in the midst of it."""
        for share in (4, 2) if PROVES else ():
            begun[len(begun) // share].result()
            self.plane.kill(Part.API_SERVER)
            restarted(self.plane)
            tried("kills of the API server among updates and rotations")

    def settle(self) -> None:
        """End every rotation with a new key, and kill nothing any more."""
        every = ("--type", "aws")
        self.operate("rotate", *every, "--complete")
        assert self.operate("rotate", *every) == 0
        super().settle()
        # An account that was claimed only now: its receipt is for the next update to give.
        told = self.pool.run("pool", "rotate", *every, "--who", *self.where, "--output", "json").quiet().json
        behind = {each["holder"].split("/")[2] for each in told["lagging"]}
        for stack in self.stacks:
            if stack.folder.name in behind:
                stack.up().quiet()
        assert self.operate("rotate", *every, "--complete") == 0


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
    storm = KeyStorm(pool, tmp_path, seed, STACKS, KILLS)
    storm.plane = plane
    storm.configure(0, whole=True)
    seen = tmp_path / "seen"
    seen.mkdir()
    with client_for(kubeconfig, tmp_path / "discovered.json") as admin:
        with watched(pool, seen, Members(admin, pool.pool), admin, ""):
            made(admin, pool.pool)
            pool.up().quiet()
            began = time.monotonic()
            storm.stacks[0].up().quiet()
            storm.run(longest=LONGEST / 2 * (time.monotonic() - began))
            storm.settle()
        names = Secrets(admin, pool.pool).names()

    keys = Keys().replay(*(changes_in(seen / kind) for kind in ("secrets", "configmaps")))
    assert keys.wrong == [], f"seed {seed}"
    assert not [name for name in names if name.endswith(".other-key")]
    assert {name: len(living) for name, living in keys.alive.items()} == dict.fromkeys(NAMES, 1)
    used = Counter(one for held in keys.held.values() for one in held)
    assert used.keys() == set[str]().union(*keys.alive.values())
    assert sum(used.values()) == ACCOUNTS + (STACKS + 2 * PAIRS) * len(MADE), used
    for each in (storm.stacks[0], pool):
        each.preview("--refresh", "--expect-no-changes").quiet()
    for what, count in storm.ended.items():
        tried(f"updates and rotations that {what}", count)
    tried("keys that were revoked", keys.revoked)
    tried("changes of a key in a Secret that uses it", keys.changed)
