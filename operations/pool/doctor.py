"""`credfleet doctor`: what is wrong with a pool, and the command that fixes it; nothing is written.

Each look is judged by itself, in `health.py`, so that one thing that is wrong hides no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from components.account_pool.admission.policies import API_VERSION, BINDING, POLICY
from components.account_pool.admission.roles import Right
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.account_pool.core.pool import Pool
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.status import status_of
from components.connection import ClusterTarget, Connection, NoReply, Reply, connect
from components.errors import ClusterError, ConfigurationError, CredfleetError, ExplainedError, NotSignedIn
from operations.cli.answer import CommandResult
from operations.cli.tables import Column, Table
from operations.folders import Folders
from operations.pool.access import DEFAULT_STACK, PoolTarget, namespace_problem, typed_options
from operations.pool.health import (
    OK,
    Diagnosis,
    Health,
    accounts,
    admission,
    claims,
    held,
    rights,
    settings_of_pool,
    wrong,
)

_PLURALS: Final = {POLICY: "validatingadmissionpolicies", BINDING: "validatingadmissionpolicybindings"}


MARKS: Final = {Health.WELL: "✓", Health.NOTED: "·", Health.UNKNOWN: "?", Health.WRONG: "✗"}
"""How a table shows it."""


def doctor(where: PoolTarget, stack: str | None) -> CommandResult:
    """Look at everything and tell it; exit code 1 when something is wrong."""
    found = [*_examine(where, stack)]
    count = sum(each.health is Health.WRONG for each in found)
    rows = [
        (MARKS[each.health], each.subject, each.text + (f"\n→ {each.fix}" if each.fix else ""))
        for each in found
    ]
    return CommandResult(
        {
            "well": not count,
            "findings": [
                {
                    "subject": each.subject,
                    "health": str(each.health),
                    "text": each.text,
                    "fix": each.fix or None,
                }
                for each in found
            ],
        },
        [
            Table(
                "Health of the pool", ("", Column("Subject", names=True), Column("Finding", folds=True)), rows
            ),
            f"\n{count} wrong" if count else "\nNothing is wrong with the pool.",
        ],
        exit_code=int(count > 0),
    )


def _examine(given: PoolTarget, stack: str | None) -> Iterator[Diagnosis]:
    """Look at everything, as far as it can be seen."""
    try:
        where = given if stack is None else _where(stack, given.kubeconfig)
        yield from (replace(each, fix=where.advise(each.fix)) for each in _examine_pool(where, stack))
    except ConfigurationError as error:
        yield from (wrong("configuration", f"{p.place}: {p.problem}", p.fix) for p in error.problems)
    except ExplainedError as error:
        is_cluster = isinstance(error, ClusterError | NotSignedIn) or error.code == "no-cluster"
        yield wrong("cluster" if is_cluster else "pool", f"{error.place}: {error.problem}", error.fix)
    except NoReply as silence:
        yield wrong("cluster", f"it does not answer: {silence}", "start it, or name another --kubeconfig")


def _examine_pool(where: PoolTarget, stack: str | None) -> Iterator[Diagnosis]:
    target = where.target()
    look = _Look(connect(target), where.namespace)
    yield from look.cluster(target)
    if (gone := namespace_problem(target, where.namespace)) is not None:
        yield wrong("pool", f"{gone.place}: {gone.problem}", gone.fix)
        return
    settings, diagnosis = settings_of_pool(look.config_map(), where.namespace)
    yield from rights(look.may, where.namespace, settings.new_keys if settings else ())
    yield from admission(look.admission, where.namespace, settings or PoolConfigMap())
    yield diagnosis
    if settings is not None:
        snapshot, now = Pool.snapshot(target, where.namespace), datetime.now(UTC)
        yield from held(snapshot.holds, where.namespace)
        yield from accounts(status_of(snapshot, settings), where.namespace, now, _lacking(stack))
        survey = Pool.survey(target, where.namespace, settings)
        yield from claims(snapshot, survey, where.namespace)
        if stack is not None:
            yield from _listed(stack, snapshot)


def _lacking(stack: str | None) -> Callable[[str], str]:
    """Return what says of a type why `pool clean` would wipe none of it here, and what to do first."""
    from operations.pool.cleaning import load_commands
    from operations.pool.launching import command_of

    try:
        commands = load_commands(stack or DEFAULT_STACK).cleaning
    except CredfleetError as error:
        fix = error.fix
        return lambda _type: fix
    return lambda type_: "" if command_of(commands, type_) else f"add {type_} to accountPool.cleaning"


def _where(stack: str, kubeconfig: Path | None) -> PoolTarget:
    from operations.config.settings import pool_of, settings_of

    settings = settings_of(stack)
    found = PoolTarget.of_stack(pool_of(settings, stack), settings.cluster, kubeconfig)
    return replace(found, typed=typed_options(stack=stack, kubeconfig=kubeconfig))


def _listed(stack: str, snapshot: PoolSnapshot) -> Iterator[Diagnosis]:
    """Compare the CSV of a stack's members with the accounts that are there."""
    from components.account_pool.members_file import missing_or_different
    from operations.config.settings import pool_of, settings_of

    pool = pool_of(settings_of(stack), stack)
    if pool.members_from is not None:
        members = {member.name: member for member in snapshot.members}
        file = Folders.find(Path.cwd()).project / pool.members_from
        for name, each in missing_or_different(file, pool.namespace, pool.partition_keys, members):
            health = Health.WRONG if name in members else Health.NOTED
            yield Diagnosis(f"account {name}", health, each.problem, each.fix)


class _Look:
    """Reads of one cluster about one pool."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection = connection
        self._namespace = namespace

    def config_map(self) -> Reply:
        """Return what the pool says about itself."""
        path = f"/api/v1/namespaces/{self._namespace}/configmaps/{CONFIG_MAP}"
        return self._connection.call("GET", path)

    def may(self, power: Right, verb: str) -> bool:
        """Whether the API server lets the present user."""
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {
                "resourceAttributes": {
                    "namespace": self._namespace,
                    "group": power.group,
                    "resource": power.resource,
                    "verb": verb,
                }
            },
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        return bool(self._connection.call("POST", path, body=review).body.get("status", {}).get("allowed"))

    def admission(self, kind: str, name: str) -> Reply:
        """Return a policy or its binding."""
        return self._connection.call("GET", f"/apis/{API_VERSION}/{_PLURALS[kind]}/{name}")

    def cluster(self, target: ClusterTarget) -> Iterator[Diagnosis]:
        """Return which cluster it is, or why that is unknown."""
        reply = self._connection.call("GET", "/api/v1/namespaces/kube-system")
        version = self._connection.call("GET", "/version").body.get("gitVersion", "of unknown version")
        uid = reply.body["metadata"]["uid"] if reply.status == OK else "not to be read by this user"
        context = f"context {target.context}" if target.context else "the current context"
        told = f"{self._connection.server}, Kubernetes {version}, {context}, uid {uid}"
        yield Diagnosis("cluster", Health.WELL, told)
