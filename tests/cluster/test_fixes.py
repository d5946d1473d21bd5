"""What the API server's own refusals advise is run, and what was refused by hand is so in the right way.

The message of a rule cannot name the account, so a command is advised without it and completed here. The
other advice of the product is in tests/operations/pool/test_fixes.py, which holds that none is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from components.account_pool.core.keys import POOL_STATE
from components.account_pool.core.model import Member, Phase
from components.labels import HYPERSCALER_TYPE, TENANT_NAME
from tests.support.guarded_pool import GuardedPool, Keys
from tests.support.memory_cluster import credfleet

if TYPE_CHECKING:
    from pulumi_sandbox.services.control_plane import ControlPlane


@dataclass(frozen=True)
class Guarded:
    """A pool whose rules are in force, and the command line of an administrator."""

    pool: GuardedPool
    kubeconfig: Path

    def run(self, *arguments: str) -> None:
        result = credfleet(*arguments, "-n", self.pool.namespace, "--kubeconfig", str(self.kubeconfig))
        assert result.exit_code == 0, result.output

    def member(self, type_: str, labels: Keys | None = None) -> Member:
        """Make an account of a type that only the present case uses."""
        return self.pool.member({HYPERSCALER_TYPE: type_, **(labels or {})})

    def now(self, name: str) -> Member:
        where = {"name": name, "namespace": self.pool.namespace}
        return Member.parse(self.pool.api("operator", "Secret").get(**where).to_dict())

    def labelled(self, user: str, member: Member, labels: Keys) -> str:
        """Return why a user may not label an account."""
        return str(self.pool.patch(user, member, {"metadata": {"labels": labels}}))

    def claims(self) -> int:
        listed = self.pool.api("operator", "ConfigMap").get(namespace=self.pool.namespace)
        return sum(each["metadata"]["name"].startswith("claim-") for each in listed.to_dict()["items"])


@pytest.fixture(scope="module")
def guarded(control_plane: ControlPlane, pool: GuardedPool) -> Guarded:
    return Guarded(pool, control_plane.kubeconfig("admin"))


def owned_by_hand(guarded: Guarded, command: list[str]) -> None:
    member = guarded.member("aws")
    refused = guarded.labelled("owner", member, {TENANT_NAME: "acme"})
    assert "`credfleet pool claim`" in refused
    guarded.run(*command, "--type", "aws", "--tenant", "acme")
    assert guarded.now(member.name).tenant == "acme"


def freed_by_hand(guarded: Guarded, command: list[str]) -> None:
    member = guarded.member("gcp")
    guarded.run("pool", "claim", "--type", "gcp", "--tenant", "acme")
    refused = guarded.labelled("operator", guarded.now(member.name), {TENANT_NAME: None})
    assert "`credfleet pool release`" in refused
    guarded.run(*command, "--type", "gcp", "--tenant", "acme")
    assert guarded.now(member.name).token is None


def cleaned_by_hand(guarded: Guarded, command: list[str]) -> None:
    member = guarded.member("azure", {POOL_STATE: "dirty"})
    refused = guarded.labelled("operator", member, {POOL_STATE: None})
    assert "`credfleet pool clean`" in refused
    guarded.run(*command, "--type", "azure", "--command", "azure=true", "--yes")
    assert guarded.now(member.name).state is None


def deleted_by_hand(guarded: Guarded, command: list[str]) -> None:
    member = guarded.member("openstack", {POOL_STATE: "dirty"})
    assert "`credfleet pool decommission`" in str(guarded.pool.delete("operator", "Secret", member.name))
    guarded.run(*command, member.name, "--yes")
    assert guarded.pool.delete("operator", "Secret", member.name) is None


def bound_again_by_hand(guarded: Guarded, command: list[str]) -> None:
    guarded.member("alicloud")
    before = guarded.claims()
    record = guarded.pool.record(Phase.RELEASING)
    refused = str(guarded.pool.replace("claimer", replace(record, phase=Phase.BOUND)))
    assert "`credfleet pool sweep`" in refused
    guarded.run(*command)
    assert guarded.claims() == before


ADVISED: Final[Mapping[str, Callable[[Guarded, list[str]], None]]] = {
    "credfleet pool claim": owned_by_hand,
    "credfleet pool release": freed_by_hand,
    "credfleet pool clean": cleaned_by_hand,
    "credfleet pool decommission": deleted_by_hand,
    "credfleet pool sweep": bound_again_by_hand,
}


@pytest.mark.parametrize(("advice", "situation"), ADVISED.items(), ids=ADVISED.keys())
def test_what_a_refusal_of_the_api_server_advises_runs_and_fixes(
    guarded: Guarded, advice: str, situation: Callable[[Guarded, list[str]], None]
) -> None:
    situation(guarded, advice.split()[1:])
