"""Checks that the identities of a stack have exactly the rights in its cluster that they need."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from components.account_pool.admission.roles import Right
from components.connection import ClusterTarget, Connection, reach
from components.errors import CredfleetError
from operations.bootstrap.google import GoogleAnswer, ask_google
from operations.bootstrap.rights import CLUSTER, Identity, Rights, Subject, rights_of
from operations.bootstrap.script import Bootstrap
from operations.cli.answer import CommandResult, VerdictLine
from operations.cli.failures import GENERIC, NOT_ALLOWED

_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_RBAC: Final = "rbac.authorization.k8s.io"
_CREATED: Final = 201
_ABSENT: Final = 404
_NEVER: Final = (
    Right("", "pods", ("create",)),
    Right("", "users", ("impersonate",)),
    Right(_RBAC, "clusterroles", ("bind", "escalate")),
    Right(_RBAC, "clusterrolebindings", ("create",)),
)
"""Rights that an identity must not have: with each of them it can obtain all others."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A right of an identity, to be checked."""

    identity: Identity
    place: str
    verb: str
    right: Right

    @property
    def key(self) -> tuple[str, str, str]:
        """The action, regardless of place and identity."""
        return self.right.group, self.right.resource, self.verb

    @property
    def text(self) -> str:
        """A description of the right."""
        where = f"in {self.place}" if self.place != CLUSTER else "in the whole cluster"
        of = f".{self.right.group}" if self.right.group else ""
        named = f" {', '.join(self.right.names)}" if self.right.names else ""
        return f"{self.verb} {self.right.resource}{of}{named} {where}"


def check(found: Bootstrap, kubeconfig: Path | None) -> CommandResult:
    """Check each identity for missing rights (exit code 5) and excessive ones (exit code 1)."""
    given = found.settings.cluster
    file = str(kubeconfig) if kubeconfig is not None else given.kubeconfig
    connection = reach(ClusterTarget(given.context, file, given.uid), "run again once it does").patient
    rights = {role: rights_of(role, found.settings, found.at_rest.project.directory) for role in Identity}
    places = {place for those in rights.values() for place in those} - {CLUSTER}
    looked = {place: connection.call("GET", f"/api/v1/namespaces/{place}") for place in sorted(places)}
    absent = [place for place, reply in looked.items() if reply.status == _ABSENT]
    subjects = found.subjects
    needed = [
        each for role, those in rights.items() for each in _each(role, those) if each.place not in absent
    ]
    lacking = [each for each in needed if not _may(connection, subjects[each.identity], each)]
    excess = [each for each in _too_much(rights, absent) if _may(connection, subjects[each.identity], each)]
    google = ask_google(found) if "gcp" in found.clouds else GoogleAnswer()
    lines = [
        *(f"· {place} is not there yet: apply the Roles again after the first update" for place in absent),
        *(VerdictLine(False, f"{each.identity} lacks: {each.text}") for each in lacking),
        *(VerdictLine(False, f"{each.identity} can {each.text}, and does not need to") for each in excess),
        *(VerdictLine(False, each) for each in (*google.lacking, *google.excess)),
    ]
    stack = found.at_rest.stack
    if lacking:
        lines.append(f"→ credfleet bootstrap --stack {stack} --format yaml | kubectl apply -f -")
    if excess:
        lines.append("→ find who gives it: kubectl get clusterrolebindings,rolebindings -A -o wide")
    if google.lacking or google.excess:
        lines.append(f"→ compare with: credfleet bootstrap --stack {stack} --repo OWNER/REPO")
    if not any((lacking, excess, google.lacking, google.excess)):
        lines.append(VerdictLine(True, f"the identities of stack {stack} may do what they need, no more"))
    others = found.unasked(google=bool(google.unasked))
    lines += [f"· not asked: {each}" for each in (*google.unasked, *others)]
    code = NOT_ALLOWED if lacking or google.lacking else GENERIC if excess or google.excess else 0
    return CommandResult(None, lines, code)


def _each(identity: Identity, rights: Rights) -> Iterator[_Asked]:
    for place, those in rights.items():
        for right in those:
            yield from (_Asked(identity, place, str(verb), right) for verb in right.verbs)


def _too_much(rights: Mapping[Identity, Rights], absent: Collection[str]) -> Iterator[_Asked]:
    """Yield rights that an identity must not have: those only for deployments, and sweeping ones."""
    deploys = [each for each in _each(Identity.DEPLOY, rights[Identity.DEPLOY]) if not each.right.names]
    for identity in (Identity.PREVIEW, Identity.DRIFT):
        own = {(each.place, each.key) for each in _each(identity, rights[identity])}
        for place in sorted(rights[identity].keys() - absent):
            for each in deploys:
                if own.isdisjoint({(place, each.key), (CLUSTER, each.key)}):
                    yield replace(each, identity=identity, place=place)
    for identity in Identity:
        yield from _each(identity, {CLUSTER: _NEVER})


def _may(connection: Connection, subject: Subject, asked: _Asked) -> bool:
    """Return whether the API server would allow an action. Raises CredfleetError `not-allowed`."""
    attributes: dict[str, Any] = {
        "group": asked.right.group,
        "resource": asked.right.resource.partition("/")[0],
        "subresource": asked.right.resource.partition("/")[2],
        "verb": asked.verb,
        **({"namespace": asked.place} if asked.place != CLUSTER else {}),
        **({"name": asked.right.names[0]} if asked.right.names else {}),
    }
    groups = ["system:authenticated", *([subject.name] if subject.kind == "Group" else [])]
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": subject.name, "groups": groups, "resourceAttributes": attributes},
    }
    reply = connection.call("POST", _REVIEWS, body=body)
    if reply.status != _CREATED:
        raise CredfleetError(
            code="not-allowed",
            place=connection.server,
            problem=f"it does not say what others may do: {reply.text}",
            fix="run this as who administers the cluster: it takes the right to create subjectaccessreviews",
        )
    return bool((reply.body.get("status") or {}).get("allowed"))
