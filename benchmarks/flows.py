"""Ways to get an account for a tenant: the claim protocol, the calls it is made of by hand, and the seed's.

A flow serves one claimer at a time; what it did is counted in its tally.
"""

import json
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

from benchmarks.kept_alive import MERGE_PATCH, METADATA, METADATA_LIST, Access, KeptAlive, Tally, expect
from benchmarks.large_pools import TYPE, member_name
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.kubernetes_api import KubernetesApi
from components.account_pool.core.model import ClaimRequest, Partition, Policy, record_name
from components.account_pool.core.pool import CLAIMS, Pool
from components.account_pool.core.records import Claimed
from components.connection import CONNECTIONS, Connection
from components.labels import HYPERSCALER_TYPE, TENANT_NAME

PAGE: Final = 500


class Flow:
    """Claim, claim again and give back the account of a tenant; a flow does what it is asked for."""

    def claim(self, tenant: str, number: int) -> None:
        """Take an account for a tenant that has none. number: of the claimer among those at it now."""
        raise NotImplementedError

    def reuse(self, tenant: str) -> None:
        """Ask for the account of a tenant that has one."""
        raise NotImplementedError

    def release(self, tenant: str) -> None:
        """Release the account."""
        raise NotImplementedError

    def settle(self) -> None:
        """Wait for what goes on in the background."""


class CallsByHand(Flow):
    """A flow that makes its calls on the Secrets of a namespace over one connection of its own."""

    def __init__(self, access: Access, namespace: str, tally: Tally) -> None:
        self._call = KeptAlive(access, tally)
        self._secrets = f"/api/v1/namespaces/{namespace}/secrets"


class OurFlow(Flow):
    """The account pool as a provider uses it: all claimers of a process share it and its connections."""

    def __init__(self, kubeconfig: Path, namespace: str, tally: Tally) -> None:
        from kubernetes.client import ApiClient, Configuration
        from kubernetes.config import load_kube_config

        configuration = Configuration()
        load_kube_config(config_file=str(kubeconfig), client_configuration=configuration)
        configuration.connection_pool_maxsize = CONNECTIONS
        client = ApiClient(configuration)
        wire: Any = client.rest_client
        wire.pool_manager = _Counted(wire.pool_manager, tally)
        api = KubernetesApi(Connection(client), namespace, CLAIMS)
        self._pool = Pool(api, namespace, PoolConfigMap(policy=Policy.RELEASE))
        self._claims: dict[str, Claimed] = {}

    def claim(self, tenant: str, number: int) -> None:  # noqa: ARG002 - the pool spreads claimers by itself
        """Take an account."""
        self._claims[tenant] = self._pool.claim(ClaimRequest(tenant, TYPE))

    def reuse(self, tenant: str) -> None:
        """Claim again."""
        self._claims[tenant] = self._pool.claim(ClaimRequest(tenant, TYPE))

    def release(self, tenant: str) -> None:
        """Release the account."""
        claimed = self._claims.pop(tenant)
        self._pool.release(claimed.record, claimed.holder)

    def settle(self) -> None:
        """Wait for the Events."""
        self._pool.flush(60)


class _Counted:
    """A pool manager of urllib3 for one server, and its connections, which counts."""

    proxy = None

    def __init__(self, manager: Any, tally: Tally) -> None:
        self._manager = manager
        self._connections: Any = None
        self._tally = tally

    def connection_from_url(self, url: str) -> Self:
        self._connections = self._manager.connection_from_url(url)
        return self

    def urlopen(self, method: str, url: str, **options: Any) -> Any:
        response = self._connections.urlopen(method, url, **options)
        self._tally.add(method, url, response.status, len(response.data))
        return response


class ByHand(CallsByHand):
    """The calls of the claim protocol where nothing interferes, one after the other, no decision taken."""

    def __init__(self, access: Access, namespace: str, tally: Tally) -> None:
        super().__init__(access, namespace, tally)
        self._records = f"/api/v1/namespaces/{namespace}/configmaps"
        self._held: dict[str, dict[str, Any]] = {}

    def claim(self, tenant: str, number: int) -> None:
        """GET R, LIST own, LIST free, CREATE R, PATCH M, PUT R; each claimer takes a member of its own."""
        name = record_name(Partition(TYPE), tenant, "0")
        expect(self._call("GET", f"{self._records}/{name}"), 404)
        self._list(f"{HYPERSCALER_TYPE}={TYPE},!shared,{TENANT_NAME}={tenant}")
        free = self._list(f"{HYPERSCALER_TYPE}={TYPE},!{TENANT_NAME},!credfleet.io/pool-state,!shared")
        mine = member_name(number)
        member = next(item["metadata"] for item in free["items"] if item["metadata"]["name"] == mine)
        record = expect(self._call("POST", self._records, _record(name, tenant, member)), 201)
        token = f"{name}.{record['metadata']['uid']}.1"
        self._label(member["name"], member["resourceVersion"], tenant, token)
        record["data"]["phase"] = "Bound"
        self._held[tenant] = expect(self._call("PUT", f"{self._records}/{name}", record), 200)

    def reuse(self, tenant: str) -> None:
        """GET R, GET M, PUT R."""
        record = self._record(tenant)
        expect(self._call("GET", f"{self._secrets}/{record['data']['member']}", accept=METADATA), 200)
        record["data"]["holders"] = json.dumps({"cli": json.loads(record["data"]["holders"])["cli"] + 1})
        self._put(record)

    def release(self, tenant: str) -> None:
        """GET R, PUT R, GET M, PATCH M, DELETE R."""
        record = self._record(tenant)
        record["data"].update(phase="Releasing", holders="{}")
        record = self._put(record)
        name = record["data"]["member"]
        answer = expect(self._call("GET", f"{self._secrets}/{name}", accept=METADATA), 200)
        self._label(name, answer["metadata"]["resourceVersion"], None, None)
        meta = record["metadata"]
        preconditions = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
        expect(self._call("DELETE", f"{self._records}/{meta['name']}", {"preconditions": preconditions}), 200)
        del self._held[tenant]

    def _list(self, selector: str) -> Any:
        path = f"{self._secrets}?labelSelector={quote(selector)}&limit={PAGE}"
        return expect(self._call("GET", path, accept=METADATA_LIST), 200)

    def _record(self, tenant: str) -> Any:
        name = self._held[tenant]["metadata"]["name"]
        return expect(self._call("GET", f"{self._records}/{name}"), 200)

    def _put(self, record: dict[str, Any]) -> Any:
        return expect(self._call("PUT", f"{self._records}/{record['metadata']['name']}", record), 200)

    def _label(self, name: str, version: str, tenant: str | None, token: str | None) -> None:
        metadata = {
            "resourceVersion": version,
            "labels": {TENANT_NAME: tenant},
            "annotations": {
                "credfleet.io/claim-token": token,
                "credfleet.io/claim-origin": token and "pool",
                "credfleet.io/claim-policy": token and "release",
                "credfleet.io/tenant-id": tenant,
            },
        }
        path = f"{self._secrets}/{name}"
        patch = {"metadata": metadata}
        expect(self._call("PATCH", path, patch, accept=METADATA, content_type=MERGE_PATCH), 200)


def _record(name: str, tenant: str, member: dict[str, Any]) -> dict[str, Any]:
    labels = {"credfleet.io/pool-record": "true", HYPERSCALER_TYPE: TYPE, TENANT_NAME: tenant}
    data = {
        "tenant": tenant,
        "partition": str(Partition(TYPE)),
        "slot": "0",
        "member": member["name"],
        "memberUid": member["uid"],
        "attempt": "1",
        "phase": "Pending",
        "policy": "release",
        "holders": '{"cli": 1}',
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels},
        "data": data,
    }


class SeedFlow(CallsByHand):
    """The proposal this pool began with, to the letter: whole Secrets are listed, the first one is taken."""

    def claim(self, tenant: str, number: int) -> None:  # noqa: ARG002 - everybody takes the first
        """List mine; list the free, label the first; again while another was quicker; list mine."""
        if self._mine(tenant):
            return
        while True:
            free = self._list(f"!{TENANT_NAME},{HYPERSCALER_TYPE}={TYPE}")
            if not free:
                raise SystemExit("the pool is too small for this many claimers")
            status, _ = self._label(free[0], tenant)
            if status == 200:
                self._mine(tenant)
                return

    def reuse(self, tenant: str) -> None:
        """List mine."""
        self._mine(tenant)

    def release(self, tenant: str) -> None:
        """Take the label off; the proposal does not say how."""
        expect(self._label(self._mine(tenant)[0], None), 200)

    def _mine(self, tenant: str) -> list[Any]:
        return self._list(f"{TENANT_NAME}={tenant},{HYPERSCALER_TYPE}={TYPE}")

    def _list(self, selector: str) -> list[Any]:
        found = expect(self._call("GET", f"{self._secrets}?labelSelector={quote(selector)}"), 200)
        return found["items"] or []

    def _label(self, secret: Any, tenant: str | None) -> tuple[int, Any]:
        meta = secret["metadata"]
        metadata = {"resourceVersion": meta["resourceVersion"], "labels": {TENANT_NAME: tenant}}
        path = f"{self._secrets}/{meta['name']}"
        return self._call("PATCH", path, {"metadata": metadata}, content_type=MERGE_PATCH)
