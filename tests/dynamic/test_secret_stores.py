"""Reads and pushes of the direct back end in the genuine host, on a real API server and Secret Manager."""

from __future__ import annotations

import base64
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest
import yaml

from components.labels import PREFIX
from components.projection.model import PROJECTED_BY, digests
from components.secret_manager import SecretManagerTarget
from components.secret_stores.admission import document_of
from components.secret_stores.lookout import EsoLookoutProvider
from components.secret_stores.provider import SecretPushProvider, SecretReadProvider
from sandbox.tests.support.clouds import secret_manager
from tests.support.cases import cases, tabled
from tests.support.certificates import only_key, without_key
from tests.support.dynamic_host import UNKNOWN, Host, Properties, Provider, Recorded, dynamic_host
from tests.support.mutual_tls import Server, mutual_tls
from tests.support.people import grant
from tests.support.secrets import Secrets
from tests.support.stores import cluster_store, provider, ref, store_in

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane

SENTINEL = "s3ntinel-of-a-credential"
READER = "reader"
OWNER = "pulumi/o/p/s/stores/it"


@pytest.fixture(scope="module")
def google(tmp_path_factory: pytest.TempPathFactory) -> Generator[SecretManagerTarget]:
    with secret_manager(tmp_path_factory.mktemp("secret-manager")) as cloud:
        yield SecretManagerTarget(f"{cloud.url}/v1/", "any")


@pytest.fixture(scope="module")
def host(control_plane: ControlPlane, google: SecretManagerTarget) -> Generator[Host]:
    config = {
        "cluster": {"kubeconfig": str(control_plane.kubeconfig("admin"))},
        "gcp:secretManagerCustomEndpoint": google.endpoint,
        "gcp:accessToken": google.token,
    }
    with dynamic_host(config) as host:
        yield host


@pytest.fixture
def reads(host: Host) -> Provider:
    return host.provider(SecretReadProvider())


@pytest.fixture
def pushes(host: Host) -> Provider:
    return host.provider(SecretPushProvider())


class Cluster:
    """Secrets and ServiceAccounts of a cluster, made as its administrator."""

    def __init__(self, admin: DynamicClient) -> None:
        self._admin = admin

    def of(self, namespace: str) -> Secrets:
        return Secrets(self._admin, namespace)

    def dismiss(self, namespace: str) -> None:
        """Delete the ServiceAccount `reader`."""
        accounts = self._admin.resources.get(api_version="v1", kind="ServiceAccount")
        accounts.delete(name=READER, namespace=namespace)

    def token(self, namespace: str) -> str:
        """Have a token made for the ServiceAccount `reader`."""
        tokens = self._admin.resources.get(api_version="v1", kind="ServiceAccount").subresources["token"]
        made = tokens.create(body={"spec": {"expirationSeconds": 600}}, name=READER, namespace=namespace)
        return str(made.status.token)

    def account(self, namespace: str, may: str, *, of: str, verbs: str = "get") -> None:
        """Make the ServiceAccount `reader`, which may do something to one Secret of another namespace."""
        accounts = self._admin.resources.get(api_version="v1", kind="ServiceAccount")
        accounts.create(body={"metadata": {"name": READER}}, namespace=namespace)
        rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": verbs.split(",")}
        named = {} if "create" in verbs else {"resourceNames": [may]}
        grant(self._admin, of, f"system:serviceaccount:{namespace}:{READER}", [{**rule, **named}])


@pytest.fixture
def cluster(admin: DynamicClient) -> Cluster:
    return Cluster(admin)


@pytest.fixture
def other(admin: DynamicClient, namespace: str) -> str:
    """A second namespace."""
    name = f"{namespace}-other"
    admin.resources.get(api_version="v1", kind="Namespace").create(body={"metadata": {"name": name}})
    return name


def way(store: Any, of: Any = None) -> Properties:
    return {
        "store": document_of(store),
        "provider": None if of is None else document_of(of),
        "labels": {},
    }


def kubernetes_way(remote: str, namespace: str | None = None) -> Properties:
    """A store of the whole cluster whose provider reads `remote` as the caller's own ServiceAccount."""
    account = {"name": READER, **({} if namespace is None else {"namespace": namespace})}
    spec = {"remoteNamespace": remote, "auth": {"serviceAccount": account}}
    of = provider("Kubernetes", spec)
    retry = {"maxRetries": 0}
    return way(cluster_store(providerRef=ref(of), retrySettings=retry), of)


def read(namespace: str, key: str, through: Properties, **more: Any) -> Properties:
    data = {"password": {"key": key, "property": "password"}}
    store = {"kind": "SecretStore" if "namespace" in through["store"] else "ClusterSecretStore"}
    return {
        "namespace": namespace,
        "target": "copy",
        "owner": OWNER,
        "read": {"name": "it", "store": {**store, "name": "store"}, "data": data},
        **through,
        **more,
    }


def failure(refused: pytest.ExceptionInfo[grpc.RpcError]) -> str:
    return str(refused.value.details())


def test_a_read_brings_a_value_into_a_secret_and_no_byte_leaves_the_cluster(
    reads: Provider, cluster: Cluster, namespace: str, other: str
) -> None:
    cluster.of(other).put("db", {"password": SENTINEL, "user": "u"})
    cluster.account(namespace, "db", of=other)
    inputs = read(namespace, "db", kubernetes_way(other))
    made = reads.create(inputs)
    assert cluster.of(namespace).data("copy") == {"password": SENTINEL}
    assert made.id == made.outputs["reference"] == f"{namespace}/copy"
    assert made.outputs["sourceVersion"] == f"db@{cluster.of(other).version('db')}"
    assert SENTINEL not in repr(made)
    assert base64.b64encode(SENTINEL.encode()).decode() not in repr(made)
    assert not reads.is_changed(made, inputs)
    assert reads.create(inputs).lasting == made.lasting
    template = {"url": "db://{{ .password }}"}
    made = reads.update(made, {**inputs, "read": {**inputs["read"], "template": template}})
    assert cluster.of(namespace).data("copy") == {"url": f"db://{SENTINEL}"}
    assert SENTINEL not in repr(made)


def test_a_caller_never_reads_what_only_another_caller_may(
    reads: Provider, cluster: Cluster, namespace: str, other: str, admin: DynamicClient
) -> None:
    pool = f"{namespace}-pool"
    admin.resources.get(api_version="v1", kind="Namespace").create(body={"metadata": {"name": pool}})
    for tenant, account in ((namespace, "aws-1"), (other, "aws-2")):
        cluster.of(pool).put(account, {"password": f"{SENTINEL}-{account}"})
        cluster.account(tenant, account, of=pool)
    through = kubernetes_way(pool)
    for tenant, own, foreign in ((namespace, "aws-1", "aws-2"), (other, "aws-2", "aws-1")):
        reads.create(read(tenant, own, through))
        assert cluster.of(tenant).data("copy") == {"password": f"{SENTINEL}-{own}"}
        with pytest.raises(grpc.RpcError) as refused:
            reads.create(read(tenant, foreign, through, target="stolen"))
        assert f"not-allowed: Kubernetes/it: Secret {pool}/{foreign}: " in failure(refused)
        assert f'User "system:serviceaccount:{tenant}:{READER}" cannot get' in failure(refused)
        assert SENTINEL not in failure(refused)
        assert "stolen" not in cluster.of(tenant).names()


def test_a_read_whose_field_is_gone_is_a_change_that_the_update_refuses(
    reads: Provider, cluster: Cluster, namespace: str, other: str
) -> None:
    cluster.of(other).put("db", {"password": "one"})
    cluster.account(namespace, "db", of=other)
    wanted = read(namespace, "db", kubernetes_way(other))
    wanted["read"]["data"] = {"it": {"key": "db", "property": "password"}}
    made = reads.create(wanted)
    cluster.of(other).remove("db")
    cluster.of(other).put("db", {"passWord": "two"})
    assert reads.is_changed(made, wanted)
    with pytest.raises(grpc.RpcError) as refused:
        reads.update(made, wanted)
    assert "has no db, property password" in failure(refused)
    assert cluster.of(namespace).data("copy") == {"it": "one"}


def test_a_rotated_value_is_followed_and_a_target_changed_by_hand_is_put_right(
    reads: Provider, cluster: Cluster, namespace: str, other: str
) -> None:
    cluster.of(other).put("db", {"password": "one"})
    cluster.account(namespace, "db", of=other)
    inputs = read(namespace, "db", kubernetes_way(other))
    made = reads.create(inputs)
    for word, will_change in (("one", False), ("two", True)):
        foreseen = digests({"password": base64.b64encode(word.encode()).decode()})
        assert reads.is_changed(made, {**inputs, "foreseen": {"copy": foreseen}}) is will_change
    cluster.of(other).change("db", "password", "two")
    assert reads.is_changed(made, inputs)
    followed = reads.update(made, inputs)
    assert cluster.of(namespace).data("copy") == {"password": "two"}
    assert followed.outputs["digest"] != made.outputs["digest"]
    cluster.of(namespace).change("copy", "password", "by hand")
    seen = reads.refresh(followed)
    assert seen.outputs["digest"] != followed.outputs["digest"]
    assert reads.is_changed(seen, inputs)
    reads.update(seen, inputs)
    assert cluster.of(namespace).data("copy") == {"password": "two"}
    cluster.of(namespace).remove("copy")
    assert reads.refresh(followed).id == ""


def test_a_target_has_type_labels_and_annotations_and_a_type_it_cannot_have_leaves_it_as_it_is(
    reads: Provider, cluster: Cluster, namespace: str, other: str
) -> None:
    def typed(type_: str, **marks: str) -> Properties:
        return {**plain, "read": {**plain["read"], "type": type_, "labels": marks, "annotations": marks}}

    def marks() -> list[dict[str, str]]:
        metadata = own.live("copy")["metadata"]
        noted: dict[str, str] = metadata["annotations"]
        assert noted[PROJECTED_BY] == OWNER
        return [metadata["labels"], {key: noted[key] for key in noted if not key.startswith(PREFIX)}]

    cluster.of(other).put("db", {"password": "one"})
    cluster.account(namespace, "db", of=other)
    plain = read(namespace, "db", kubernetes_way(other))
    made, own = reads.create(plain), cluster.of(namespace)
    own.mark("copy", {"theirs": "x"})
    own.annotate("copy", {"theirs": "x"})
    both = typed("Opaque", team="a", tier="b")
    made = reads.update(made, both)
    assert marks() == [{"theirs": "x", "team": "a", "tier": "b"}] * 2
    for take_away in (own.mark, own.annotate):
        assert not reads.is_changed(made, both)
        take_away("copy", {"team": None})
        assert reads.is_changed(made, both)
        made = reads.update(made, both)
    made = reads.update(made, typed("Opaque", team="c"))
    assert marks() == [{"theirs": "x", "team": "c"}] * 2
    for type_ in ("kubernetes.io/ssh-auth", "kubernetes.io/dockerconfigjson", "kubernetes.io/tls"):
        with pytest.raises(grpc.RpcError, match="give it what its type demands"):
            reads.update(made, typed(type_))
        assert own.data("copy") == {"password": "one"}
    basic = typed("kubernetes.io/basic-auth", team="c")
    made = reads.update(made, basic)
    assert (own.live("copy")["type"], own.data("copy")) == ("kubernetes.io/basic-auth", {"password": "one"})
    assert not reads.is_changed(made, basic)
    reads.update(made, plain)
    assert own.live("copy")["type"] == "Opaque"


def test_a_target_of_somebody_else_is_refused_in_a_preview_and_outlives_the_read(
    reads: Provider, cluster: Cluster, namespace: str, other: str
) -> None:
    cluster.of(other).put("db", {"password": SENTINEL})
    cluster.account(namespace, "db", of=other)
    cluster.of(namespace).put("copy", {"theirs": "x"})
    inputs = read(namespace, "db", kubernetes_way(other))
    (reason,) = reads.refusals(inputs)
    assert reason.startswith(f"Secret {namespace}/copy: it exists and this read did not write it")
    elsewhere = reads.create({**inputs, "target": "mine"})
    reads.delete(elsewhere)
    reads.delete(elsewhere)
    assert "mine" not in cluster.of(namespace).names()
    assert cluster.of(namespace).data("copy") == {"theirs": "x"}


NOWHERE = {
    "kubernetes": {"server": {"url": "https://127.0.0.1:1"}, "auth": {"serviceAccount": {"name": "x"}}}
}


@tabled("through, place, said")
def test_what_the_rule_refuses_is_refused_in_a_preview_before_anybody_is_asked(
    reads: Provider, through: Properties, place: str, said: str
) -> None:
    (reason,) = reads.refusals(read("acme", "db", through))
    assert reason.startswith(f"{place}: ")
    assert said in reason


def test_what_is_not_known_yet_passes_a_preview_and_what_is_known_is_judged(reads: Provider) -> None:
    through = way(store_in("acme", provider={"fake": {"data": []}}))
    unknown = read("acme", UNKNOWN, through)
    reads.check(unknown)
    reads.check({**read("acme", "db", through), "namespace": UNKNOWN})
    denied = way(cluster_store(provider=NOWHERE, conditions=[{"namespaces": ["globex"]}]))
    assert len(reads.refusals(read("acme", UNKNOWN, denied))) == 1


def test_labels_that_the_stack_does_not_declare_are_looked_up(
    reads: Provider, admin: DynamicClient, namespace: str
) -> None:
    conditions = [{"namespaceSelector": {"matchLabels": {"team": "x"}}}]
    through = way(cluster_store(provider={"fake": {"data": []}}, conditions=conditions))
    assert len(reads.refusals(read(namespace, "db", through))) == 1
    admin.resources.get(api_version="v1", kind="Namespace").patch(
        name=namespace,
        body={"metadata": {"labels": {"team": "x"}}},
        content_type="application/merge-patch+json",
    )
    reads.check(read(namespace, "db", through))


def test_a_value_that_the_store_does_not_have_is_told_by_its_key(reads: Provider, namespace: str) -> None:
    through = way(store_in(namespace, provider={"fake": {"data": [{"key": "other", "value": SENTINEL}]}}))
    with pytest.raises(grpc.RpcError) as refused:
        reads.create(read(namespace, "db", through))
    assert "absent: ExternalSecret/" in failure(refused)
    assert "has no db, property password" in failure(refused)
    assert SENTINEL not in failure(refused)


@cases(
    "server, refused",
    {
        "strange": ({"caBundle": base64.b64encode(without_key()).decode()}, True),
        "strange-by-name": ({"caProvider": {"type": "ConfigMap", "name": "strange", "key": "ca.crt"}}, True),
        "the-cluster's": ({"caProvider": {"type": "ConfigMap", "name": "kube-root-ca.crt"}}, False),
        "not-there-yet": ({"caProvider": {"type": "ConfigMap", "name": "later", "key": "ca.crt"}}, False),
    },
)
def test_the_own_cluster_is_read_by_neither_back_end_through_certificates_of_another(
    reads: Provider, host: Host, admin: DynamicClient, namespace: str, *, server: Properties, refused: bool
) -> None:
    strange = {"metadata": {"name": "strange"}, "data": {"ca.crt": without_key().decode()}}
    maps = admin.resources.get(api_version="v1", kind="ConfigMap")
    maps.create(body={"apiVersion": "v1", "kind": "ConfigMap", **strange}, namespace=namespace)
    own = {"url": "https://kubernetes.default", **server}
    spec = {"remoteNamespace": namespace, "auth": {"serviceAccount": {"name": "reader"}}, "server": own}
    through = way(store_in(namespace, provider={"kubernetes": spec}))
    told = reads.refusals(read(namespace, "x", through))
    named = {"caProvider": {"namespace": namespace, **server["caProvider"]}} if "caProvider" in server else {}
    given = {"place": "stores.s", "server": {**own, **named}}
    eso = host.provider(EsoLookoutProvider()).refusals({"servers": [given]})
    words = "do not vouch for that, which is known by ConfigMap kube-root-ca.crt"
    assert [words in str(told), words in str(eso)] == [refused, refused]


def test_a_token_kept_in_a_secret_logs_in(
    reads: Provider, cluster: Cluster, namespace: str, other: str
) -> None:
    cluster.of(other).put("db", {"password": SENTINEL})
    cluster.account(namespace, "db", of=other)
    cluster.of(namespace).put("login", {"token": cluster.token(namespace)})
    auth = {"token": {"bearerToken": {"name": "login", "key": "token"}}}
    through = way(store_in(namespace, provider={"kubernetes": {"remoteNamespace": other, "auth": auth}}))
    reads.create(read(namespace, "db", through))
    assert cluster.of(namespace).data("copy") == {"password": SENTINEL}


def test_a_certificate_kept_in_a_secret_logs_in_to_another_server(
    reads: Provider, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    answer = {
        "kind": "Secret",
        "metadata": {"name": "db", "resourceVersion": "7"},
        "data": {"password": base64.b64encode(SENTINEL.encode()).decode()},
    }
    cluster.of(namespace).put("login", {"crt": without_key().decode(), "key": only_key().decode()})
    with mutual_tls(tmp_path, clients=without_key(), status=200, answer=answer) as server:
        reads.create(read(namespace, "db", server_way(namespace, server)))
    assert cluster.of(namespace).data("copy") == {"password": SENTINEL}
    assert server.asked == ["credfleet test GET /api/v1/namespaces/default/secrets/db"]


@pytest.mark.parametrize("status", [400, 403])
def test_the_words_of_another_server_are_not_repeated(
    reads: Provider, cluster: Cluster, namespace: str, tmp_path: Path, status: int
) -> None:
    answer = {"kind": "Status", "message": SENTINEL, "reason": SENTINEL}
    cluster.of(namespace).put("login", {"crt": without_key().decode(), "key": only_key().decode()})
    with (
        mutual_tls(tmp_path, clients=without_key(), status=status, answer=answer) as server,
        pytest.raises(grpc.RpcError) as refused,
    ):
        reads.create(read(namespace, "db", server_way(namespace, server)))
    assert f"it: HTTP {status}" in failure(refused)
    assert SENTINEL not in failure(refused)


def server_way(namespace: str, server: Server) -> Properties:
    """A store on another API server, which a certificate of the namespace's Secret `login` opens."""
    pair = {"clientCert": {"name": "login", "key": "crt"}, "clientKey": {"name": "login", "key": "key"}}
    said = {"url": server.url, "caBundle": base64.b64encode(server.authority.encode()).decode()}
    block = {"kubernetes": {"server": said, "auth": {"cert": pair}}}
    return way(store_in(namespace, provider=block, retrySettings={"maxRetries": 0}))


def test_a_server_that_nobody_vouches_for_and_certificates_that_are_none_have_causes_of_their_own(
    reads: Provider, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    cluster.of(namespace).put("ca", {"ca.crt": "no certificates"})
    cluster.account(namespace, "db", of=namespace)
    with mutual_tls(tmp_path, clients=without_key(), status=200, answer={}) as server:
        for known_by, said in (
            ({}, "no authority that the provider trusts signed the API server's certificate"),
            (
                {"caProvider": {"type": "Secret", "name": "ca"}},
                "server.caProvider names holds no certificates in PEM",
            ),
        ):
            spec = {"server": {"url": server.url, **known_by}, "auth": {"serviceAccount": {"name": READER}}}
            through = way(store_in(namespace, provider={"kubernetes": spec}))
            with pytest.raises(grpc.RpcError) as refused:
                reads.create(read(namespace, "db", through))
            assert "misconfigured: Kubernetes/" in failure(refused)
            assert said in failure(refused)


def test_a_certificate_that_is_none_is_told_without_its_key(
    reads: Provider, cluster: Cluster, namespace: str
) -> None:
    cluster.of(namespace).put("login", {"crt": "no certificate", "key": SENTINEL})
    pair = {"clientCert": {"name": "login", "key": "crt"}, "clientKey": {"name": "login", "key": "key"}}
    through = way(store_in(namespace, provider={"kubernetes": {"auth": {"cert": pair}}}))
    with pytest.raises(grpc.RpcError) as refused:
        reads.create(read(namespace, "db", through))
    assert "misconfigured: Kubernetes/" in failure(refused)
    assert SENTINEL not in failure(refused)


def push(namespace: str, through: Properties, **more: Any) -> Properties:
    store = {"kind": "SecretStore" if "namespace" in through["store"] else "ClusterSecretStore"}
    entry = {"secret": "db", "key": "password", "remoteKey": "pushed", "property": "password"}
    said = {"name": "it", "store": {**store, "name": "store"}, "data": [entry], "deletionPolicy": "Delete"}
    return {"namespace": namespace, "owner": OWNER, "push": {**said, **more}, **through}


WRITE = "get,create,update,delete"


def test_a_push_follows_its_secret_and_takes_what_it_wrote_with_it(
    pushes: Provider, cluster: Cluster, namespace: str, other: str
) -> None:
    cluster.of(namespace).put("db", {"password": SENTINEL, "user": "u"})
    cluster.account(namespace, "pushed", of=other, verbs=WRITE)
    inputs = push(namespace, kubernetes_way(other))
    made = pushes.create(inputs)
    assert cluster.of(other).data("pushed") == {"password": SENTINEL}
    assert made.outputs["places"] == ["pushed, property password"]
    assert SENTINEL not in repr(made)
    version = cluster.of(other).version("pushed")
    made = pushes.create(inputs)
    assert cluster.of(other).version("pushed") == version
    assert not pushes.is_changed(made, inputs)

    cluster.of(namespace).change("db", "password", "two")
    assert pushes.is_changed(made, inputs)
    user = {"secret": "db", "key": "user", "remoteKey": "pushed", "property": "user"}
    widened = pushes.update(
        made, push(namespace, kubernetes_way(other), data=[*inputs["push"]["data"], user])
    )
    assert cluster.of(other).data("pushed") == {"password": "two", "user": "u"}
    narrowed = pushes.update(widened, push(namespace, kubernetes_way(other), data=[user]))
    assert cluster.of(other).data("pushed") == {"user": "u"}

    refreshed = pushes.refresh(narrowed)
    assert (refreshed.id, refreshed.outputs) == (narrowed.id, narrowed.outputs)
    pushes.delete(narrowed)
    pushes.delete(narrowed)
    assert "pushed" not in cluster.of(other).names()
    assert pushes.refresh(narrowed).id == ""


def test_a_push_to_another_namespace_looks_writes_and_deletes_there(
    pushes: Provider, cluster: Cluster, namespace: str, other: str
) -> None:
    cluster.of(namespace).put("db", {"password": SENTINEL})
    cluster.of(namespace).put("pushed", {"password": "the provider's namespace has its own"})
    cluster.account(namespace, "pushed", of=other, verbs=WRITE)
    inputs = push(namespace, kubernetes_way(namespace))
    (entry,) = inputs["push"]["data"]
    inputs["push"]["data"] = [{**entry, "remoteNamespace": other}]
    made = pushes.create(inputs)
    assert made.outputs["places"] == [f"{other}/pushed, property password"]
    assert cluster.of(other).data("pushed") == {"password": SENTINEL}
    pushes.delete(made)
    assert cluster.of(other).names() == set()
    assert "pushed" in cluster.of(namespace).names()


def test_what_a_push_leaves_in_the_store_needs_no_login_to_be_left(
    pushes: Provider, cluster: Cluster, namespace: str, other: str
) -> None:
    cluster.of(namespace).put("db", {"password": "one"})
    cluster.account(namespace, "pushed", of=other, verbs=WRITE)
    made = pushes.create(push(namespace, kubernetes_way(other), deletionPolicy="None"))
    cluster.dismiss(namespace)
    pushes.delete(made)
    assert cluster.of(other).data("pushed") == {"password": "one"}


def test_what_cannot_be_removed_for_want_of_a_login_is_told_with_both_ways_on(
    pushes: Provider, cluster: Cluster, namespace: str, other: str
) -> None:
    cluster.of(other).put("pushed", {"password": SENTINEL})
    inputs = push(namespace, kubernetes_way(other))
    with pytest.raises(grpc.RpcError) as refused:
        pushes.delete(Recorded("it", inputs, inputs))
    told = failure(refused)
    assert f"PushSecret/{namespace}/it: what it pushed is to be removed, and is left in the store" in told
    assert f"ServiceAccount {namespace}/{READER}: it is not there" in told
    assert "make it, or correct the selector; or, to leave it there for good" in told
    assert cluster.of(other).data("pushed") == {"password": SENTINEL}


def test_a_pushed_value_changed_by_hand_is_put_right(
    pushes: Provider, cluster: Cluster, namespace: str, other: str
) -> None:
    cluster.of(namespace).put("db", {"password": "one"})
    cluster.account(namespace, "pushed", of=other, verbs=WRITE)
    inputs = push(namespace, kubernetes_way(other))
    made = pushes.create(inputs)
    cluster.of(other).change("pushed", "password", "by hand")
    assert pushes.is_changed(made, inputs)
    pushes.update(made, inputs)
    assert cluster.of(other).data("pushed") == {"password": "one"}


def test_a_place_of_somebody_else_is_refused_in_a_preview_and_kept_if_that_is_asked_for(
    pushes: Provider, cluster: Cluster, namespace: str, other: str
) -> None:
    cluster.of(namespace).put("db", {"password": SENTINEL})
    cluster.of(other).put("pushed", {"password": "theirs"})
    cluster.account(namespace, "pushed", of=other, verbs=WRITE)
    (reason,) = pushes.refusals(push(namespace, kubernetes_way(other)))
    assert "pushed, property password is in store already; this push did not write it" in reason
    modest = push(namespace, kubernetes_way(other), updatePolicy="IfNotExists")
    made = pushes.create(modest)
    assert not pushes.is_changed(made, modest)
    pushes.delete(made)
    assert cluster.of(other).data("pushed") == {"password": "theirs"}


def test_a_push_to_a_namespace_that_is_not_there_is_told_so(
    pushes: Provider, cluster: Cluster, namespace: str, control_plane: ControlPlane
) -> None:
    admin = yaml.safe_load(control_plane.kubeconfig("admin").read_text())["users"][0]["user"]
    cluster.of(namespace).put("db", {"password": "one"})
    cluster.of(namespace).put("login", {"token": admin["token"]})
    auth = {"token": {"bearerToken": {"name": "login", "key": "token"}}}
    block = {"kubernetes": {"remoteNamespace": f"{namespace}-none", "auth": auth}}
    with pytest.raises(grpc.RpcError) as refused:
        pushes.create(push(namespace, way(store_in(namespace, provider=block))))
    assert f"there is no namespace {namespace}-none" in failure(refused)


def test_a_push_to_another_place_is_another_push_and_a_new_login_is_not(
    pushes: Provider, cluster: Cluster, namespace: str, other: str
) -> None:
    cluster.of(namespace).put("db", {"password": "one"})
    cluster.account(namespace, "pushed", of=other, verbs=WRITE)
    made = pushes.create(push(namespace, kubernetes_way(other)))
    login = pushes.diff(made, push(namespace, kubernetes_way(other, namespace)))
    assert (login.changes, list(login.replaces)) == (2, [])
    moved = pushes.diff(made, push(namespace, kubernetes_way(namespace)))
    assert (list(moved.replaces), moved.deleteBeforeReplace) == (["provider"], True)


def gcpsm_way(namespace: str, **spec: Any) -> Properties:
    return way(store_in(namespace, provider={"gcpsm": {"projectID": namespace, **spec}}))


def test_secret_manager_is_pushed_to_and_read_from(
    pushes: Provider, reads: Provider, cluster: Cluster, namespace: str
) -> None:
    cluster.of(namespace).put("db", {"password": SENTINEL})
    entry = {"secret": "db", "key": "password", "remoteKey": "db"}
    inputs = push(namespace, gcpsm_way(namespace), data=[entry])
    pushed = pushes.create(inputs)
    assert not pushes.is_changed(pushed, inputs)
    wanted = read(namespace, "db", gcpsm_way(namespace))
    wanted["read"]["data"] = {"password": {"key": "db"}}
    got = reads.create(wanted)
    assert cluster.of(namespace).data("copy") == {"password": SENTINEL}
    assert got.outputs["sourceVersion"] == "db@1"

    cluster.of(namespace).change("db", "password", "two")
    followed = pushes.update(pushed, inputs)
    assert reads.is_changed(got, wanted)
    assert reads.update(got, wanted).outputs["sourceVersion"] == "db@2"
    assert cluster.of(namespace).data("copy") == {"password": "two"}
    assert SENTINEL not in repr((pushed, got, followed))

    pinned = {**wanted, "target": "first"}
    pinned["read"] = {**wanted["read"], "data": {"password": {"key": "db", "version": "1"}}}
    reads.create(pinned)
    assert cluster.of(namespace).data("first") == {"password": SENTINEL}
    pushes.delete(followed)
    assert pushes.refresh(followed).id == ""
    with pytest.raises(grpc.RpcError) as refused:
        reads.update(got, wanted)
    assert "SecretStore store has no db" in failure(refused)


def echo(namespace: str, kind: str = "Echo") -> Properties:
    """A store of a kind that only `tests.support.own_kind` registers."""
    reference = {"apiVersion": "cluster.providers.credfleet.io/v1alpha1", "kind": kind, "name": "echo"}
    module = {"module": "tests.support.own_kind"}
    return {
        "store": {"namespace": namespace, "name": "store", "spec": {"providerRef": reference}},
        "provider": {**reference, **module, "spec": {"greeting": "hello"}},
        "labels": {},
    }


def test_a_kind_of_the_stacks_own_code_is_served_by_its_own_client(
    reads: Provider, cluster: Cluster, namespace: str
) -> None:
    wanted = read(namespace, "db", echo(namespace))
    wanted["read"]["data"] = {"said": {"key": "db"}}
    reads.create(wanted)
    assert cluster.of(namespace).data("copy") == {"said": f"hello {namespace}: db"}
    (reason,) = reads.refusals(read(namespace, "db", echo(namespace, "Ecko")))
    assert "Fake (providers.credfleet.io/v1alpha1)" in reason
    assert "did you mean Echo?" in reason


def test_a_secret_is_read_as_a_whole_without_a_property_and_has_no_versions(
    reads: Provider, cluster: Cluster, namespace: str, other: str
) -> None:
    cluster.of(other).put("db", {"password": "é<&>", "json.txt": '{"a": {"b" : 1.10}}'})
    cluster.account(namespace, "db", of=other)
    wanted = read(namespace, "db", kubernetes_way(other))
    inside = {"part": {"key": "db", "property": "json.txt"}}
    wanted["read"]["data"] = {"all": {"key": "db"}, **inside}
    reads.create(wanted)
    assert cluster.of(namespace).data("copy") == {
        "all": '{"json.txt":"{\\"a\\": {\\"b\\" : 1.10}}","password":"é<&>"}',
        "part": '{"a": {"b" : 1.10}}',
    }
    wanted["read"]["data"] = {"all": {"key": "db", "version": "1"}}
    (reason,) = reads.refusals(wanted)
    assert reason.startswith(f"ExternalSecret/{namespace}/it: data.all asks for version 1 of db")


def test_a_preview_knows_what_is_served_and_what_is_not_is_no_error(host: Host) -> None:
    lookout = host.provider(EsoLookoutProvider())
    absent = {"group": "external-secrets.io"}
    assert lookout.check(absent) == {**absent, "kinds": []}
    served = lookout.check({"group": "rbac.authorization.k8s.io"})
    assert "rbac.authorization.k8s.io/v1/RoleBinding" in served["kinds"]
    made = lookout.create(absent)
    assert made.outputs == {**absent, "kinds": []}
    assert not lookout.is_changed(made, absent)
    refreshed = lookout.refresh(made)
    assert (refreshed.id, refreshed.outputs) == (made.id, made.outputs)


def test_a_cluster_that_cannot_be_seen_counts_as_it_was_seen_last(tmp_path: Path) -> None:
    with dynamic_host({"cluster": {"kubeconfig": str(tmp_path / "none")}}) as blind:
        lookout = blind.provider(EsoLookoutProvider())
        group = {"group": "external-secrets.io"}
        assert lookout.check(group)["kinds"] == []
        before = {**group, "kinds": ["external-secrets.io/v1/SecretStore"]}
        assert lookout.check(group, before) == before


@pytest.mark.parametrize("key", ["no JSON", "[]", "{}"])
def test_a_key_of_a_service_account_that_is_none_is_told_without_it(
    reads: Provider, cluster: Cluster, namespace: str, key: str
) -> None:
    cluster.of(namespace).put("login", {"key": key})
    auth = {"secretRef": {"secretAccessKeySecretRef": {"name": "login", "key": "key"}}}
    with pytest.raises(grpc.RpcError) as refused:
        reads.create(read(namespace, "db", gcpsm_way(namespace, auth=auth)))
    assert "what auth.secretRef names is not a key of a service account" in failure(refused)
