"""What each dynamic class that writes something is given, and how what it has written looks from outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import requests
from kubernetes.dynamic.exceptions import ForbiddenError

from components.account_pool.core.keys import POOL_STATE
from components.account_pool.member_data import OWNER
from components.account_pool.member_secret import MemberSecretProvider
from components.account_pool.provider import AccountClaimProvider
from components.account_pool.seal import PoolSealProvider
from components.aso_credentials.provider import AsoProjectionProvider
from components.dynamic import DynamicProvider
from components.labels import TENANT_NAME
from components.projection.provider import SecretProjectionProvider
from components.projection.sources import SHARED_WITH
from components.pull_secret.provider import (
    PullSecretCopyProvider,
    PullSecretRetentionProvider,
    PullSecretStartProvider,
)
from components.secret_manager import SecretManager, SecretManagerTarget, open_secret_manager, secret_name
from components.secret_stores.admission import document_of
from components.secret_stores.provider import LoginSecretProvider, SecretPushProvider, SecretReadProvider
from components.service_credentials.provider import (
    ServiceMigrationProvider,
    ServiceSecretProvider,
    WorkloadBindingProvider,
)
from tests.support.dynamic_host import Properties
from tests.support.hyperfleet import bring, delete
from tests.support.members import Members
from tests.support.noticed import until
from tests.support.people import grant
from tests.support.secrets import Secrets
from tests.support.stores import cluster_store, provider, ref

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

    from sandbox.tests.support.clouds import Served

PROJECT: Final = "test-project"
HOLDER: Final = "pulumi/o/p/s/acme/aws"
_READER: Final = "reader"
_GUID: Final = "00000000-0000-4000-8000-000000000001"


class World:
    """A cluster with two namespaces, Secret Manager and HyperFleet; a case never shares its own.

    gone: a namespace that is not there. going: one that is being deleted, once `let_go` was called.
    """

    def __init__(self, admin: DynamicClient, namespace: str, google: Served, hyperfleet: Served) -> None:
        self.namespace, self.other = namespace, f"{namespace}-other"
        self.gone, self.going = f"{namespace}-gone", f"{namespace}-going"
        self.secrets, self.others = Secrets(admin, namespace), Secrets(admin, self.other)
        self.members = Members(admin, namespace)
        self.id = f"id-{uuid4()}"
        self.hyperfleet = hyperfleet
        self._admin, self._google = admin, google
        self.api("v1", "Namespace").create(body={"metadata": {"name": self.other}})

    def api(self, version: str, kind: str) -> Any:
        """Objects of a kind, as the cluster's administrator."""
        return self._admin.resources.get(api_version=version, kind=kind)

    @property
    def manager(self) -> SecretManager:
        """Secret Manager."""
        return open_secret_manager(SecretManagerTarget(f"{self._google.url}/v1/", "any"))

    def let_go(self) -> None:
        """Create a namespace, and begin to delete it; a finalizer keeps it."""
        namespaces = self.api("v1", "Namespace")
        namespaces.create(body={"metadata": {"name": self.going, "finalizers": ["credfleet.io/tests"]}})
        namespaces.delete(name=self.going)
        until(self._lets_nothing_in)

    def _lets_nothing_in(self) -> bool:
        try:
            self.api("v1", "Secret").create(
                body={"metadata": {"generateName": "x-"}}, namespace=self.going, dry_run="All"
            )
        except ForbiddenError:
            return True
        return False

    def let_reader(self, verbs: str) -> None:
        """Make a ServiceAccount in the first namespace that may do this to Secrets of the second."""
        self.api("v1", "ServiceAccount").create(
            body={"metadata": {"name": _READER}}, namespace=self.namespace
        )
        rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": verbs.split(",")}
        grant(self._admin, self.other, f"system:serviceaccount:{self.namespace}:{_READER}", [rule])


@dataclass(frozen=True)
class Case:
    """A resource of one class.

    given: makes what it needs, and returns its inputs. shown: what it has written. carries: whether that says
    by which incarnation. calls_cluster: whether it has anything to do with the API server.
    """

    given: Callable[[World], Properties]
    shown: Callable[[World], Any]
    carries: bool = True
    calls_cluster: bool = True


def _made(world: World) -> Any:
    if "made" not in world.secrets.names():
        return None
    live = world.secrets.live("made")
    return world.secrets.data("made"), live["type"], live["metadata"].get("labels")


def _copy(world: World) -> Properties:
    world.others.put("account", {"key": "x"})
    return {
        "sourceNamespace": world.other,
        "sourceName": "account",
        "targetNamespace": world.namespace,
        "targetName": "made",
        "owner": HOLDER,
    }


def composed(
    values: Mapping[str, str], recipe: Properties, key: str | None = None, **more: Any
) -> Callable[[World], Properties]:
    """Return inputs of a Secret that is made of another one with these values, or of one key of it."""

    def given(world: World) -> Properties:
        world.secrets.put("given", values, annotations={SHARED_WITH: f"{world.gone}, {world.going}"})
        source = {"namespace": world.namespace, "name": "given", "place": "place", "key": key}
        named = {"namespace": world.namespace, "targetName": "made", "owner": HOLDER}
        return {**named, "sources": [source], "recipe": recipe, **more}

    return given


_BOUND: Final = {"instance_guid": "i", "instance_name": "db", "binding_guid": "b", "tags": [], "label": "sql"}
_BINDING: Final = {
    "form": "binding",
    "instances": [{"numbers": "float", "strict": False, "bound": _BOUND, "takesFile": False}],
}
_ASO: Final = {
    "plain": {f"AZURE_{key}_ID": _GUID for key in ("SUBSCRIPTION", "TENANT", "CLIENT")},
    "proofs": ["AZURE_CLIENT_SECRET"],
    "settings": [],
    "strict": True,
}


def _legacy(world: World) -> Properties:
    world.secrets.put("queue", {"type": "mq", "password": "x"}, "servicebinding.io/mq")
    named = {"namespace": world.namespace, "instance": "queue", "instanceGuid": "guid-1"}
    return {**named, "targetName": "made", "owner": HOLDER}


def _store(world: World) -> Properties:
    account = {"name": _READER, "namespace": world.namespace}
    of = provider("Kubernetes", {"remoteNamespace": world.other, "auth": {"serviceAccount": account}})
    store = cluster_store(providerRef=ref(of), retrySettings={"maxRetries": 0})
    through = {"store": document_of(store), "provider": document_of(of), "labels": {}}
    return {"namespace": world.namespace, "owner": HOLDER, **through}


def _read(world: World) -> Properties:
    world.others.put("db", {"password": "x"})
    world.let_reader("get")
    data = {"password": {"key": "db", "property": "password"}}
    read = {"name": "it", "store": {"kind": "ClusterSecretStore", "name": "store"}, "data": data}
    return {**_store(world), "target": "made", "read": read}


def _push(world: World) -> Properties:
    world.secrets.put("db", {"password": "x"})
    world.let_reader("get,create,update,delete")
    entry = {"secret": "db", "key": "password", "remoteKey": "pushed", "property": "password"}
    store = {"kind": "ClusterSecretStore", "name": "store"}
    push = {"name": "it", "store": store, "data": [entry], "deletionPolicy": "Delete"}
    return {**_store(world), "push": push}


def _pushed(world: World) -> Any:
    return world.others.data("pushed") if "pushed" in world.others.names() else None


def _workload(world: World) -> Properties:
    pod = {"containers": [{"name": "app", "image": "none"}]}
    template = {"metadata": {"labels": {"app": "shop"}}, "spec": pod}
    spec = {"selector": {"matchLabels": {"app": "shop"}}, "template": template}
    world.api("apps/v1", "Deployment").create(
        body={"metadata": {"name": "shop"}, "spec": spec}, namespace=world.namespace
    )
    named = {"namespace": world.namespace, "apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}
    return {**named, "vcapSecret": "vcap", "takesFile": True, "directories": {"db": "db"}, "content": "1"}


def _template(world: World) -> Any:
    found = world.api("apps/v1", "Deployment").get(name="shop", namespace=world.namespace).to_dict()
    (app,) = found["spec"]["template"]["spec"]["containers"]
    return {each["mountPath"] for each in app.get("volumeMounts", ())}


def _claim(world: World) -> Properties:
    world.members.add("aws-1")
    world.members.add("aws-2")
    return {"namespace": world.namespace, "tenant": "acme", "type": "aws", "holder": HOLDER}


def _accounts(world: World) -> Any:
    labels = [world.members.metadata(name)["labels"] for name in ("aws-1", "aws-2")]
    return [(each.get(TENANT_NAME), each.get(POOL_STATE)) for each in labels]


def _seal(world: World) -> Properties:
    world.members.add_claimed("aws-1")
    return {"namespace": world.namespace, "allowDestroy": False}


def _retention(world: World) -> Properties:
    name = secret_name(PROJECT, world.id)
    world.manager.create(name, {})
    world.manager.add(name, b"x")
    return {
        "project": PROJECT,
        "secretId": world.id,
        "version": 1,
        "onReplace": "keep",
        "onDelete": "disable",
    }


def _versions(world: World) -> Any:
    return [each.state for each in world.manager.versions(secret_name(PROJECT, world.id))]


def _start(world: World) -> Properties:
    bring(world.hyperfleet, world.id)
    delete(world.hyperfleet, world.id)
    return {"cluster": world.id, "ready": True}


def _reports(world: World) -> Any:
    path = f"{world.hyperfleet.url}/api/hyperfleet/v1/clusters/{world.id}/statuses"
    return requests.get(path, timeout=10).json()["items"]


CASES: Final[Mapping[type[DynamicProvider], Case]] = {
    SecretProjectionProvider: Case(_copy, _made),
    ServiceSecretProvider: Case(composed({"type": "sql", "password": "x"}, _BINDING), _made),
    AsoProjectionProvider: Case(composed({"key": "s3cret-value"}, _ASO, key="key"), _made),
    LoginSecretProvider: Case(composed({"key": "x"}, {"keys": ["token"]}, key="key"), _made),
    MemberSecretProvider: Case(
        composed({"key": "x"}, {}, owner=OWNER, labels={"hyperscaler-type": "aws"}), _made
    ),
    PullSecretCopyProvider: Case(
        composed({"key": '{"auths":{}}'}, {}, labels={"cluster-id": "c"}, key="key"), _made
    ),
    ServiceMigrationProvider: Case(_legacy, _made),
    SecretReadProvider: Case(_read, _made),
    SecretPushProvider: Case(_push, _pushed, carries=False),
    WorkloadBindingProvider: Case(_workload, _template),
    AccountClaimProvider: Case(_claim, _accounts),
    PoolSealProvider: Case(_seal, lambda world: world.members.metadata("aws-1")["labels"], carries=False),
    PullSecretRetentionProvider: Case(_retention, _versions, carries=False, calls_cluster=False),
    PullSecretStartProvider: Case(_start, _reports, carries=False, calls_cluster=False),
}
