"""What an update does about External Secrets Operator's objects and their Secrets, where it is served.

Nobody reconciles here: the tests write what the operator would. The control plane is the module's own, for
definitions are the whole cluster's.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pulumi_sandbox.services.build import binaries
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.parts import ADMIN

from components.connection import ClusterTarget
from components.projection.model import PROJECTED_BY
from components.secret_manager import SecretManagerTarget, new_secret_manager, secret_name
from components.secret_stores.delivery import EsoDeliveryProvider
from components.secret_stores.direct_consumers import obstacles
from components.secret_stores.lookout import EsoLookoutProvider
from components.secret_stores.provider import SecretReadProvider
from components.secret_stores.stack_cluster import StackCluster
from sandbox.tests.support.clouds import secret_manager
from sandbox.tests.support.cluster import client_for
from tests.dynamic.test_secret_stores import way
from tests.support.cases import table, tabled
from tests.support.dynamic_host import Host, Properties, Provider, dynamic_host
from tests.support.eso import ExternalSecrets, serve
from tests.support.people import grant
from tests.support.secrets import Secrets
from tests.support.stores import cluster_store, provider, ref

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

OWNER = "pulumi/o/p/s/secretStores/reads/it"
KIND = "external-secrets.io/v1/ExternalSecret"
PLACE = "credfleet:secretStores.reads.it"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Generator[ControlPlane]:
    folder = tmp_path_factory.mktemp("eso")
    plane = ControlPlane.start(folder / "plane", binaries=binaries(), die_with_parent=True)
    try:
        yield plane
    finally:
        plane.stop()


@pytest.fixture(scope="module")
def eso_admin(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Generator[DynamicClient]:
    discovered = tmp_path_factory.mktemp("discovery") / "cache.json"
    with client_for(plane.kubeconfig(ADMIN.name), discovered) as client:
        yield client


@pytest.fixture(scope="module")
def host(plane: ControlPlane) -> Generator[Host]:
    with dynamic_host({"cluster": {"kubeconfig": str(plane.kubeconfig(ADMIN.name))}}) as host:
        yield host


@pytest.fixture(scope="module")
def lookout(host: Host, eso_admin: DynamicClient) -> Provider:
    """The lookout, once the kinds are served."""
    serve(eso_admin, "ExternalSecret")
    serve(eso_admin, "PushSecret", "v1alpha1")
    lookout = host.provider(EsoLookoutProvider())
    assert KIND in lookout.check({"group": "external-secrets.io"})["kinds"]
    return lookout


@pytest.fixture
def tenant(eso_admin: DynamicClient, lookout: Provider) -> Secrets:
    name = f"tenant-{secrets.token_hex(4)}"
    body = {"metadata": {"name": name, "labels": {"tier": "gold"}}}
    eso_admin.resources.get(api_version="v1", kind="Namespace").create(body=body)
    return Secrets(eso_admin, name)


@pytest.fixture
def external(eso_admin: DynamicClient, tenant: Secrets) -> ExternalSecrets:
    return ExternalSecrets(eso_admin, tenant.namespace)


@pytest.fixture
def reads(host: Host) -> Provider:
    return host.provider(SecretReadProvider())


@pytest.fixture
def deliveries(host: Host) -> Provider:
    return host.provider(EsoDeliveryProvider())


def wanted(tenant: Secrets) -> Properties:
    """What the lookout is told of a read that ESO is to make."""
    read = {"place": PLACE, "namespace": tenant.namespace, "name": "it", "target": "copy", "owner": OWNER}
    return {"group": "external-secrets.io", "reads": [read]}


def direct(tenant: Secrets) -> Properties:
    """The same read by the direct back end."""
    of = provider("Fake", {"data": [{"key": "db", "value": "one"}]})
    return {
        "namespace": tenant.namespace,
        "target": "copy",
        "owner": OWNER,
        "read": {
            "name": "it",
            "store": {"kind": "ClusterSecretStore", "name": "store"},
            "data": {"password": {"key": "db"}},
        },
        **way(cluster_store(providerRef=ref(of)), of),
    }


def test_a_secret_that_is_there_already_is_never_given_to_the_operator(
    lookout: Provider, tenant: Secrets, external: ExternalSecrets
) -> None:
    assert lookout.refusals(wanted(tenant)) == []
    tenant.put("copy", {"theirs": "x"})
    (reason,) = lookout.refusals(wanted(tenant))
    assert reason.startswith(
        f"{PLACE}: Secret {tenant.namespace}/copy: it exists and this read did not make it"
    )
    tenant.remove("copy")
    external.declare("other", "copy")
    external.make("other", "copy", k="v")
    (reason,) = lookout.refusals(wanted(tenant))
    assert "ExternalSecret other makes it" in reason


def test_lookout_in_an_update_tells_what_is_refused_by_place(lookout: Provider, tenant: Secrets) -> None:
    made = lookout.create(wanted(tenant))
    tenant.put("copy", {"theirs": "x"})

    seen = lookout.update(made, wanted(tenant))

    assert seen.outputs["refused"].keys() == {PLACE}
    tenant.remove("copy")
    assert lookout.is_changed(seen, wanted(tenant))
    assert "refused" not in lookout.update(seen, wanted(tenant)).outputs


def test_what_the_operator_or_the_same_read_made_is_no_obstacle(
    lookout: Provider, tenant: Secrets, external: ExternalSecrets
) -> None:
    external.declare("it", "copy")
    external.make("it", "copy", password="one")
    assert lookout.refusals(wanted(tenant)) == []
    tenant.remove("copy")
    tenant.put("copy", {"password": "one"}, annotations={PROJECTED_BY: OWNER})
    assert lookout.refusals(wanted(tenant)) == []


def test_a_read_stays_direct_until_the_operator_is_there(
    control_plane: ControlPlane, admin: DynamicClient, namespace: str
) -> None:
    tenant = Secrets(admin, namespace)
    with dynamic_host({"cluster": {"kubeconfig": str(control_plane.kubeconfig("admin"))}}) as without:
        lookout = without.provider(EsoLookoutProvider())
        tenant.put("copy", {"theirs": "x"})
        assert lookout.refusals(wanted(tenant)) == []
        tenant.remove("copy")
        tenant.put("copy", {"password": "one"}, annotations={PROJECTED_BY: OWNER})
        (reason,) = lookout.refusals(wanted(tenant))
    assert "it would go, and nothing would make it again" in reason


PUSH_PLACE = "credfleet:secretStores.pushes.it"


def pushed(tenant: Secrets, **said: str) -> Properties:
    """What the lookout is told of a push that ESO is to make, to Secret `there` of the same namespace."""
    auth = {"serviceAccount": {"name": "pusher"}}
    of = provider("Kubernetes", {"remoteNamespace": tenant.namespace, "auth": auth})
    store = {"kind": "ClusterSecretStore", "name": "store"}
    data = [{"secret": "s", "key": "k", "remoteKey": "there", "property": "p"}]
    push = {
        "place": PUSH_PLACE,
        "namespace": tenant.namespace,
        "owner": OWNER,
        "push": {"name": "it", "store": store, "data": data, **said},
        **way(cluster_store(providerRef=ref(of)), of),
    }
    return {"group": "external-secrets.io", "pushes": [push]}


@pytest.fixture
def pusher(eso_admin: DynamicClient, tenant: Secrets) -> Secrets:
    """The namespace, and in it the ServiceAccount that pushes there."""
    accounts = eso_admin.resources.get(api_version="v1", kind="ServiceAccount")
    accounts.create(body={"metadata": {"name": "pusher"}}, namespace=tenant.namespace)
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    grant(eso_admin, tenant.namespace, f"system:serviceaccount:{tenant.namespace}:pusher", [rule])
    return tenant


def test_what_somebody_else_has_at_the_place_of_a_push_is_never_written_over_by_the_operator(
    lookout: Provider, pusher: Secrets, eso_admin: DynamicClient
) -> None:
    assert lookout.refusals(pushed(pusher)) == []
    pusher.put("there", {"q": "theirs"})
    (reason,) = lookout.refusals(pushed(pusher))
    assert reason.startswith(
        f"{PUSH_PLACE}: there, property p is in store already; this push did not write it"
    )
    served = {"api_version": "external-secrets.io/v1alpha1", "kind": "PushSecret"}
    live = {
        "apiVersion": served["api_version"],
        "kind": served["kind"],
        "metadata": {"name": "it", "namespace": pusher.namespace},
        "spec": {"data": [{"match": {"remoteRef": {"remoteKey": "there", "property": "p"}}}]},
    }
    eso_admin.resources.get(**served).create(body=live)
    assert lookout.refusals(pushed(pusher)) == []


@tabled("data, marks, said")
def test_what_the_same_push_wrote_or_only_keeps_is_no_obstacle_to_the_operator(
    lookout: Provider, pusher: Secrets, data: dict[str, str], marks: dict[str, str], said: dict[str, str]
) -> None:
    pusher.put("there", data, annotations=marks)
    assert lookout.refusals(pushed(pusher, **said)) == []


def test_a_secret_of_google_that_somebody_made_is_no_place_for_the_operators(
    plane: ControlPlane, lookout: Provider, tenant: Secrets, tmp_path: Path
) -> None:
    cluster = json.dumps({"kubeconfig": str(plane.kubeconfig(ADMIN.name))})
    with secret_manager(tmp_path) as google:
        endpoint = f"{google.url}/v1/"
        said = {"gcp:secretManagerCustomEndpoint": endpoint, "gcp:accessToken": "any", "cluster": cluster}
        of = provider("GCPSM", {"projectID": "acme-prod"})
        (push,) = pushed(tenant)["pushes"]
        push = {**push, **way(cluster_store(providerRef=ref(of)), of)}
        for each in push["push"]["data"]:
            del each["property"]
        live = StackCluster(ClusterTarget.parse(cluster))
        assert [*obstacles(push, live, said.get)] == []
        manager = new_secret_manager(SecretManagerTarget(endpoint, "any"))
        manager.create(name := secret_name("acme-prod", "there"), {})
        manager.add(name, b'{"q": "theirs"}')
        (problem,) = obstacles(push, live, said.get)
    assert problem.problem.startswith("there is in store already")


@tabled("labels, refused")
def test_conditions_by_labels_are_decided_by_those_of_the_cluster(
    lookout: Provider, tenant: Secrets, labels: dict[str, str], *, refused: bool
) -> None:
    caller = {
        "place": PLACE,
        "namespace": tenant.namespace,
        "store": "ClusterSecretStore/shared",
        "conditions": [{"namespaceSelector": {"matchLabels": labels}}],
        "labels": {"team": "x"},
    }
    told = lookout.refusals({"group": "external-secrets.io", "callers": [caller]})
    absent = {**caller, "namespace": "not-there-yet"}
    assert lookout.refusals({"group": "external-secrets.io", "callers": [absent]}) == []
    expected = (
        f"{PLACE}: ClusterSecretStore/shared: namespace {tenant.namespace} meets none of spec.conditions"
    )
    assert [each.startswith(expected) for each in told] == ([True] if refused else [])


def test_a_read_that_becomes_direct_takes_its_secret_over_without_a_gap(
    reads: Provider, tenant: Secrets, external: ExternalSecrets
) -> None:
    external.declare("it", "copy")
    external.make("it", "copy", password="one")
    before = tenant.live("copy")["metadata"]["uid"]
    made = reads.create(direct(tenant))
    metadata = tenant.live("copy")["metadata"]
    assert (metadata["uid"], metadata.get("ownerReferences")) == (before, None)
    assert metadata["annotations"][PROJECTED_BY] == OWNER
    assert tenant.data("copy") == {"password": "one"}
    assert external.live("it")["spec"]["target"]["creationPolicy"] == "Orphan"
    assert not reads.is_changed(made, direct(tenant))


def test_a_read_that_becomes_the_operators_leaves_its_secret_in_place(
    reads: Provider, lookout: Provider, tenant: Secrets, external: ExternalSecrets
) -> None:
    made = reads.create(direct(tenant))
    assert lookout.refusals(wanted(tenant)) == []
    external.declare("it", "copy")
    reads.delete(made)
    assert tenant.data("copy") == {"password": "one"}
    again = reads.create({**direct(tenant), "target": "second"})
    reads.delete(again)
    assert tenant.names() == {"copy"}


REFUSED = ("False", "SecretSyncedError", "could not update secret: Secret is invalid")
FETCHES = ("False", "SecretSyncedError", "could not get secret data from provider: it is gone")
SYNCED = ("True", "SecretSynced", "secret synced")
BASIC, TLS = "kubernetes.io/basic-auth", "kubernetes.io/tls"
RECAST: dict[str, tuple[str, list[str] | dict[str, str], tuple[str, str, str], str, bool]] = table(
    __file__, "RECAST"
)


def test_a_secret_makes_way_for_one_of_another_type_only_if_the_operator_can_make_that(
    deliveries: Provider, tenant: Secrets, external: ExternalSecrets
) -> None:
    for name, (former, keys, said, type_, is_kept) in RECAST.items():
        wants, wanted = delivery(tenant, name), delivery(tenant, name)
        wants["objects"][0]["type"], wanted["objects"][0]["type"] = type_, former
        external.declare(name, name)
        external.make(name, name, former, password="one")
        external.says(name, *FETCHES)
        made = deliveries.create(wanted)
        data = [{"secretKey": key} for key in ([] if isinstance(keys, dict) else keys)]
        template = {"type": type_} | ({"data": keys} if isinstance(keys, dict) else {})
        external.change(name, {"target": {"template": template}, "data": data})
        external.says(name, *said)
        deliveries.check(wants)
        assert name in tenant.names()
        deliveries.update(made, wants)
        assert (name in tenant.names()) is is_kept, name


def delivery(tenant: Secrets, *names: str, within: str = "0s") -> Properties:
    objects = [
        {
            "place": f"credfleet:secretStores.reads.{name}",
            "apiVersion": "external-secrets.io/v1",
            "kind": "ExternalSecret",
            "namespace": tenant.namespace,
            "name": name,
        }
        for name in names
    ]
    return {"objects": objects, "within": within}


def test_an_update_says_what_the_operator_has_not_done_and_the_next_one_nothing_new(
    deliveries: Provider, tenant: Secrets, external: ExternalSecrets
) -> None:
    assert deliveries.check(delivery(tenant, "it"))["undelivered"] == {}
    external.declare("it", "copy")
    made = deliveries.create(delivery(tenant, "it"))
    unseen = {"ExternalSecret it": f"{PLACE}: External Secrets Operator has not looked at it"}
    assert made.outputs["undelivered"] == unseen
    assert not deliveries.is_changed(made, delivery(tenant, "it"))
    external.says("it", "False", "SecretSyncedError", "could not get secret data from provider: said s3cr3t")
    assert deliveries.is_changed(made, delivery(tenant, "it"))
    failed = deliveries.update(made, delivery(tenant, "it"))
    said = f"{PLACE}: Ready is False, SecretSyncedError: could not get secret data from provider"
    assert failed.outputs["undelivered"] == {"ExternalSecret it": said}
    external.says("it", "True", "SecretSynced", "secret synced", syncedResourceVersion="1-x")
    assert deliveries.check(delivery(tenant, "it"))["undelivered"] == {}
    ready = deliveries.update(failed, delivery(tenant, "it"))
    assert ready.outputs["undelivered"] == {}
    external.change("it", {"refreshInterval": "2h0m0s"})
    changed = deliveries.check(delivery(tenant, "it"))["undelivered"]
    assert changed["ExternalSecret it"].endswith("has not looked at it since it was changed")
    assert deliveries.refresh(ready).outputs["undelivered"] == changed
