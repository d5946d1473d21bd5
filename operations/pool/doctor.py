"""`credfleet doctor`: finds problems of a pool and the commands that fix them, without writing.

Each check is judged separately, in `health.py`, so that one problem hides no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from components.account_pool.admission.policies import API_VERSION, BINDING, POLICY
from components.account_pool.admission.roles import Right
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.account_pool.core.pool_operator import PoolOperator
from components.account_pool.core.snapshot import PoolSnapshot
from components.connection import ClusterTarget, Connection, NoReply, connect
from components.errors import ClusterError, ConfigurationError, CredfleetError, ExplainedError, NotSignedIn
from operations.cli.answer import CommandResult
from operations.cli.tables import Column, Table
from operations.folders import Folders
from operations.pool.access import DEFAULT_STACK, PoolOptions, PoolTarget, namespace_problem
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
"""Marks of the states in a table."""


def doctor(options: PoolOptions) -> CommandResult:
    """Run all checks and report them; exit code 1 if something is wrong."""
    found = [*_examine(options)]
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


def _examine(options: PoolOptions) -> Iterator[Diagnosis]:
    """Run all checks, as far as permissions allow."""
    try:
        where = options.resolve()
        yield from (replace(each, fix=where.advise(each.fix)) for each in _examine_pool(where))
    except ConfigurationError as error:
        yield from (wrong("configuration", f"{p.place}: {p.problem}", p.fix) for p in error.problems)
    except ExplainedError as error:
        is_cluster = isinstance(error, ClusterError | NotSignedIn) or error.code == "no-cluster"
        yield wrong("cluster" if is_cluster else "pool", f"{error.place}: {error.problem}", error.fix)
    except NoReply as silence:
        yield wrong("cluster", f"it does not answer: {silence}", "start it, or name another --kubeconfig")


def _examine_pool(where: PoolTarget) -> Iterator[Diagnosis]:
    target = where.target()
    connection = connect(target)
    get = partial(connection.call, "GET")
    yield _cluster(target, connection)
    if (gone := namespace_problem(target, where.namespace)) is not None:
        yield wrong("pool", f"{gone.place}: {gone.problem}", gone.fix)
        return
    said = get(f"/api/v1/namespaces/{where.namespace}/configmaps/{CONFIG_MAP}")
    settings, diagnosis = settings_of_pool(said, where.namespace)
    may = partial(_may, connection, where.namespace)
    yield from rights(may, where.namespace, settings.new_keys if settings else ())
    yield from admission(
        lambda kind, name: get(f"/apis/{API_VERSION}/{_PLURALS[kind]}/{name}"),
        where.namespace,
        settings or PoolConfigMap(),
    )
    yield diagnosis
    if settings is not None:
        snapshot, now = PoolOperator.snapshot(target, where.namespace), datetime.now(UTC)
        yield from held(snapshot.holds, where.namespace)
        yield from accounts(snapshot, settings, where.namespace, now, _lacking(where.stack))
        survey = PoolOperator.survey(target, where.namespace, settings)
        yield from claims(snapshot, survey, where.namespace)
        if where.stack is not None:
            yield from _listed(where.stack, snapshot)


def _lacking(stack: str | None) -> Callable[[str], str]:
    """Return a function that tells why `pool clean` cannot clean a type here, and what to do first."""
    from operations.pool.cleaning import load_commands
    from operations.pool.launching import command_of

    try:
        commands = load_commands(stack or DEFAULT_STACK).cleaning
    except CredfleetError as error:
        fix = error.fix
        return lambda _type: fix
    return lambda type_: "" if command_of(commands, type_) else f"add {type_} to accountPool.cleaning"


def _listed(stack: str, snapshot: PoolSnapshot) -> Iterator[Diagnosis]:
    """Compare the CSV of a stack's members with the existing accounts."""
    from components.account_pool.members_file import missing_or_different
    from operations.config.settings import pool_of, settings_of

    pool = pool_of(settings_of(stack), stack)
    if pool.members_from is not None:
        members = {member.name: member for member in snapshot.members}
        file = Folders.find(Path.cwd()).project / pool.members_from
        for name, each in missing_or_different(file, pool.namespace, pool.partition_keys, members):
            health = Health.WRONG if name in members else Health.NOTED
            yield Diagnosis(f"account {name}", health, each.problem, each.fix)


def _may(connection: Connection, namespace: str, power: Right, verb: str) -> bool:
    """Return whether the API server allows this to the current user."""
    named = {"namespace": namespace, "group": power.group, "resource": power.resource, "verb": verb}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": named},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    return bool(connection.call("POST", path, body=review).body.get("status", {}).get("allowed"))


def _cluster(target: ClusterTarget, connection: Connection) -> Diagnosis:
    """Return the identity of the cluster, or why it is unknown."""
    reply = connection.call("GET", "/api/v1/namespaces/kube-system")
    version = connection.call("GET", "/version").body.get("gitVersion", "of unknown version")
    uid = reply.body["metadata"]["uid"] if reply.status == OK else "not readable by this user"
    context = f"context {target.context}" if target.context else "the current context"
    told = f"{connection.server}, Kubernetes {version}, {context}, uid {uid}"
    return Diagnosis("cluster", Health.WELL, told)
