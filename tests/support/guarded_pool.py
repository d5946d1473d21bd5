"""A pool's namespace on the real API server with its admission policies in force, and its people."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kubernetes.dynamic.exceptions import DynamicApiError

from components.account_pool.admission.policies import admission_manifests
from components.account_pool.admission.state_machine import Verb
from components.account_pool.core.audit import COMPONENT
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.account_pool.core.keys import (
    CLAIM_ORIGIN,
    CLAIM_POLICY,
    CLAIM_TOKEN,
    SHARED_CAPACITY,
    SHARED_CLAIMS,
    TENANT_ID,
)
from components.account_pool.core.model import JsonObject, Member, Phase
from components.account_pool.core.records import Record
from components.labels import HYPERSCALER_TYPE, TENANT_NAME
from tests.support.noticed import until
from tests.support.people import ALL_OBJECTS, grant, impersonating
from tests.support.records import BOUND

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane

Keys = Mapping[str, str | None]

MERGE: Final = "application/merge-patch+json"
CLAIMED_LABELS: Keys = {TENANT_NAME: "acme"}
TOKEN = "claim-0.00000000-0000-4000-8000-000000000000.1"
CLAIMED: Keys = {CLAIM_TOKEN: TOKEN, CLAIM_ORIGIN: "pool", CLAIM_POLICY: "clean", TENANT_ID: "acme"}
USED: Keys = {CLAIM_ORIGIN: "pool", TENANT_ID: "acme"}
SHARING: Keys = {SHARED_CLAIMS: json.dumps({TOKEN: "one"}), SHARED_CAPACITY: "2"}

VERBS: Final[Mapping[str, frozenset[Verb]]] = {
    "owner": frozenset(),
    "claimer": frozenset({Verb.CLAIM}),
    "cleaner": frozenset({Verb.CLEAN}),
    "operator": frozenset({Verb.OPERATE}),
    "bringer": frozenset({Verb.BRING}),
}


@dataclass(frozen=True)
class GuardedPool:
    """Clients of people who may write any Secret and ConfigMap; but `owner`, each has one virtual verb.

    Nothing is changed but by `member` and `record`: all other writes are dry runs.
    """

    namespace: str
    people: Mapping[str, DynamicClient]

    def api(self, user: str, kind: str) -> Any:
        return self.people[user].resources.get(api_version="v1", kind=kind)

    def member(self, labels: Keys | None = None, notes: Keys | None = None) -> Member:
        """Make an account in any state: whoever operates the pool may."""
        body = secret(labels or {}, notes or {})
        made = self.api("operator", "Secret").create(body=body, namespace=self.namespace)
        return Member.parse(made.to_dict())

    def record(self, phase: Phase) -> Record:
        """Make a record in any phase."""
        body = record_of(phase).render(self.namespace)
        made = self.api("operator", "ConfigMap").create(body=body, namespace=self.namespace)
        return Record.parse(made.to_dict())

    def create(self, user: str, kind: str, body: JsonObject) -> str | None:
        api = self.api(user, kind)
        return refusal(lambda: api.create(body=body, namespace=self.namespace, dry_run="All"))

    def patch(self, user: str, member: Member, body: JsonObject) -> str | None:
        api, where = self.api(user, "Secret"), {"name": member.name, "namespace": self.namespace}
        return refusal(lambda: api.patch(**where, body=body, content_type=MERGE, dry_run="All"))

    def replace(self, user: str, record: Record) -> str | None:
        api, body = self.api(user, "ConfigMap"), record.render(self.namespace)
        return refusal(lambda: api.replace(body=body, namespace=self.namespace, dry_run="All"))

    def delete(self, user: str, kind: str, name: str) -> str | None:
        api, where = self.api(user, kind), {"name": name, "namespace": self.namespace}
        return refusal(lambda: api.delete(**where, body={"dryRun": ["All"]}))


@contextmanager
def guarded_pool(
    plane: ControlPlane, admin: DynamicClient, folder: Path, *, allow_destroy: bool = False
) -> Generator[GuardedPool]:
    """Make a pool whose policies are in force."""
    namespace = f"test-{secrets.token_hex(5)}"
    admin.resources.get(api_version="v1", kind="Namespace").create(body={"metadata": {"name": namespace}})
    with ExitStack() as clients:
        people: dict[str, DynamicClient] = {}
        for user, verbs in VERBS.items():
            virtual = [
                {"apiGroups": ["credfleet.io"], "resources": ["accounts"], "verbs": [str(v)]} for v in verbs
            ]
            grant(admin, namespace, user, (*ALL_OBJECTS, *virtual))
            client = impersonating(plane.kubeconfig("admin"), folder / "discovery.json", user)
            people[user] = clients.enter_context(client)
        pool = GuardedPool(namespace, people)
        enforce(admin, namespace, allow_destroy=allow_destroy)
        settings: JsonObject = {"metadata": {"name": CONFIG_MAP}}
        until(lambda: pool.create("owner", "ConfigMap", settings) is not None)
        yield pool


def enforce(
    admin: DynamicClient,
    namespace: str,
    settings: PoolConfigMap | None = None,
    *,
    allow_destroy: bool = False,
) -> None:
    """Put the policies of a pool into force: the API server follows about a second after they are written."""
    settings = settings or PoolConfigMap()
    watched, words = GuardedPool(namespace, {"operator": admin}), settings.scheme
    owner = words.labels({HYPERSCALER_TYPE: "aws", TENANT_NAME: "a"})
    owned, bound = watched.member(owner), watched.record(Phase.BOUND)
    for manifest in admission_manifests(namespace, settings, allow_destroy=allow_destroy):
        api = admin.resources.get(api_version=manifest["apiVersion"], kind=manifest["kind"])
        api.create(body=manifest)
    moved: JsonObject = {"metadata": {"labels": words.labels({TENANT_NAME: "b"})}}
    until(lambda: watched.patch("operator", owned, moved) is not None)
    until(lambda: watched.replace("operator", replace(bound, tenant="other")) is not None)
    until(lambda: watched.create("operator", "Event", _forged(namespace)) is not None)
    watched.api("operator", "Secret").delete(name=owned.name, namespace=namespace)
    released = replace(bound.without_holder("h"), phase=Phase.RELEASING).render(namespace)
    records = watched.api("operator", "ConfigMap")
    records.replace(body=released, namespace=namespace)
    records.delete(name=bound.name, namespace=namespace)


def lift(admin: DynamicClient, namespace: str) -> None:
    """Let all be deleted, as a pool says that may be thrown away; the API server follows a little later."""
    for manifest in admission_manifests(namespace, PoolConfigMap(), allow_destroy=True):
        api = admin.resources.get(api_version=manifest["apiVersion"], kind=manifest["kind"])
        api.server_side_apply(
            body=manifest, name=manifest["metadata"]["name"], field_manager="lift", force_conflicts=True
        )


def _forged(namespace: str) -> JsonObject:
    about = {"apiVersion": "v1", "kind": "ConfigMap", "name": CONFIG_MAP, "namespace": namespace}
    return {
        "metadata": {"name": "forged"},
        "involvedObject": about,
        "reason": "Claimed",
        "reportingComponent": COMPONENT,
        "reportingInstance": "somebody else",
    }


def refusal(write: Callable[[], object]) -> str | None:
    """Try a write; the API server's words when a policy refused it, None when it was let through."""
    try:
        write()
    except DynamicApiError as error:
        message = str(json.loads(error.body)["message"])
        if error.status == 403 and "ValidatingAdmissionPolicy" in message:
            return message
        raise
    return None


def secret(labels: Keys, notes: Keys) -> JsonObject:
    """Draw the Secret of an account."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": f"m-{secrets.token_hex(5)}",
            "labels": {
                key: text for key, text in {HYPERSCALER_TYPE: "aws", **labels}.items() if text is not None
            },
            "annotations": dict(notes),
        },
        "data": {"key": "c2VjcmV0"},
    }


def record_of(phase: Phase) -> Record:
    """Draw a claim of tenant acme on account aws-1 by holder h."""
    return replace(
        BOUND,
        name=f"claim-{secrets.token_hex(20)}",
        uid="",
        resource_version="",
        member_uid="u-1",
        phase=phase,
    )


def merged(body: JsonObject, patch: JsonObject) -> JsonObject:
    """Return an object after a JSON merge patch."""
    after = dict(body)
    for key, value in patch.items():
        if value is None:
            after.pop(key, None)
        else:
            after[key] = merged(after.get(key) or {}, value) if isinstance(value, dict) else value
    return after
