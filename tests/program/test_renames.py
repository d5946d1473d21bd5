"""Names that change under the Pulumi CLI: what a name had stays, and a rename nobody declared is refused."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from components.account_pool.core.keys import POOL_RECORD, POOL_STATE
from components.labels import TENANT, TENANT_NAME
from tests.support import pulumi_shell
from tests.support.aso import CLIENT, SUB
from tests.support.aso import TENANT as ENTRA
from tests.support.fleet_project import FleetProject
from tests.support.secrets import Secrets

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

KINDS = ("Namespace", "Secret", "ServiceAccount", "Role", "RoleBinding", "ConfigMap")
ACCOUNTS = ("aws-1", "aws-2", "aws-3")


@dataclass
class Renaming:
    """A stack of tenants, one of which has a claim and a copy of it."""

    project: FleetProject
    admin: DynamicClient
    tenant: str = "globex"
    slot: str = "main"
    space: str = "globex"
    previously: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def write(self) -> None:
        """Declare it, with an account that the tenant brought along."""
        globex: dict[str, Any] = {
            "namespace": f"{self.project.pool}-{self.space}",
            "accounts": {
                self.slot: {"type": "aws", "deliverTo": "account", **self._former("slot")},
            },
            **self._former("tenant"),
        }
        self.project.configure(
            credentials={name: f'{{"secretAccessKey":"sentinel-{name}"}}' for name in ACCOUNTS},
            tenants={self.tenant: globex, "acme": {"namespace": f"{self.project.pool}-acme"}},
            pool={
                "allowDestroy": True,
                "admissionPolicy": True,
                "members": {
                    name: {
                        "type": "aws",
                        "accountId": f"{n:012}",
                        "credentialsFrom": name,
                        **({} if n else {"tenant": self.tenant}),
                    }
                    for n, name in enumerate(ACCOUNTS)
                },
            },
        )

    def _former(self, what: str) -> dict[str, list[str]]:
        return {"previously": self.previously[what]} if what in self.previously else {}

    def up(self) -> None:
        self.project.pulumi("up", "--yes").quiet()

    def objects(self) -> dict[str, str]:
        """Kind, namespace and name of all that is there but records, and its uid."""
        found: dict[str, str] = {}
        spaces = {self.project.pool, *(f"{self.project.pool}-{each}" for each in ("globex", "acme"))}
        for kind in KINDS:
            version = "rbac.authorization.k8s.io/v1" if kind.startswith("Role") else "v1"
            for one in self.admin.resources.get(api_version=version, kind=kind).get().items:
                meta = one.metadata
                if {meta.namespace, meta.name}.isdisjoint(spaces) or meta.name.startswith("claim-"):
                    continue
                found[f"{kind} {meta.namespace}/{meta.name}"] = meta.uid
        return found

    def account(self) -> tuple[str, str, str]:
        """Name, owner and state of the accounts that are not free; of one record each."""
        api = self.admin.resources.get(api_version="v1", kind="Secret")
        found = api.get(namespace=self.project.pool).to_dict()["items"]
        [(name, labels)] = [
            (each["metadata"]["name"], each["metadata"]["labels"])
            for each in found
            if TENANT_NAME in each["metadata"].get("labels", {})
        ]
        return name, labels[TENANT_NAME], labels.get(POOL_STATE, "usable")

    def records(self) -> list[tuple[str, str, str]]:
        api = self.admin.resources.get(api_version="v1", kind="ConfigMap")
        found = api.get(namespace=self.project.pool, label_selector=POOL_RECORD).items
        return [(one.data["tenant"], one.data["slot"], one.data["phase"]) for one in found]

    def kill_in_the_move(self, update: subprocess.Popen[bytes]) -> int:
        """Kill an update once the record of the new name is there."""
        while update.poll() is None and (self.tenant, self.slot, "Bound") not in self.records():
            pass
        pulumi_shell.kill(update)
        return update.wait()

    def namespace_label(self) -> str:
        api = self.admin.resources.get(api_version="v1", kind="Namespace")
        return str(api.get(name=f"{self.project.pool}-{self.space}").metadata.labels[TENANT])


@pytest.fixture
def renaming(project: FleetProject, admin: DynamicClient) -> Renaming:
    made = Renaming(project, admin)
    made.write()
    made.up()
    return made


def paste(project: FleetProject, said: str) -> None:
    """Run the one command that a refusal prints."""
    [line] = set(re.findall(r"`(pulumi config set [^`]+)`", " ".join(said.split())))
    project.typed(f"{line} --stack {project.stack}").quiet()


@pytest.mark.life
def test_renames_are_refused_and_keep_all_once_the_printed_lines_are_pasted(renaming: Renaming) -> None:
    before, account = renaming.objects(), renaming.account()
    for what, former in (("tenant", "globex"), ("slot", "main")):
        setattr(renaming, what, "renamed")
        renaming.write()
        refused = renaming.project.pulumi("up", "--yes", "--skip-preview", "--continue-on-error")
        assert refused.code != 0
        assert renaming.objects() == before
        assert renaming.account() == account

        paste(renaming.project, refused.out)
        renaming.previously[what] = [former]
        preview = renaming.project.pulumi("preview").quiet().out.partition("Resources:")[2]
        assert "update" in preview
        assert re.search("create|delete|replace", preview) is None, preview
        if what == "tenant":
            assert renaming.project.up_beside(renaming.kill_in_the_move).code < 0
        renaming.up()

        account = account[0], renaming.tenant, "usable"
        assert renaming.objects() == before
        assert renaming.account() == account
        assert renaming.namespace_label() == renaming.tenant
        assert renaming.records() == [(renaming.tenant, renaming.slot, "Bound")]
        renaming.project.pulumi("preview", "--expect-no-changes").quiet()
    renaming.project.pulumi("up", "--yes", "--refresh").quiet()
    renaming.project.pulumi("preview", "--expect-no-changes").quiet()
    assert renaming.objects() == before


@pytest.mark.life
def test_tenants_without_a_pool_are_renamed_and_many_go_only_where_that_is_said(
    project: FleetProject, admin: DynamicClient
) -> None:
    spaces = admin.resources.get(api_version="v1", kind="Namespace")
    file = project.folder / f"Pulumi.{project.stack}.yaml"

    def uids() -> dict[str, str]:
        found = (each["metadata"] for each in spaces.get().to_dict()["items"])
        return {one["name"]: one["uid"] for one in found if one["name"].startswith(project.pool)}

    def declare(*names: str) -> None:
        tenants = {name: {"namespace": f"{project.pool}-{name[0]}"} for name in names}
        project.configure(tenants=tenants)
        document = json.loads(file.read_text(encoding="utf-8"))
        del document["config"]["credfleet:accountPool"]
        file.write_text(json.dumps(document), encoding="utf-8")

    declare("a", "b", "c", "d")
    project.up().quiet()
    before = uids()

    declare("a-renamed", "b", "c", "d")
    refused = project.up("--continue-on-error")
    assert refused.code != 0
    paste(project, refused.out)
    project.up().quiet()
    assert uids() == before

    declare("b", "c")
    refused = project.up()
    assert refused.code != 0
    assert "2 of 4 tenants would be removed in one update: a-renamed, d" in refused.out
    assert uids() == before
    [words] = re.findall("add `([^`]+)`", refused.out)
    project.up(*words.split()).quiet()
    assert uids().keys() == {f"{project.pool}-b", f"{project.pool}-c"}
    assert "pulumi config rm credfleet:allowRemovals" in project.preview("--expect-no-changes").quiet().out


@pytest.mark.life
def test_services_credentials_and_stores_keep_their_objects_under_new_names(
    project: FleetProject, admin: DynamicClient, namespace: str
) -> None:
    home = f"{project.pool}-acme"
    principal = {"subscriptionId": SUB, "tenantId": ENTRA, "clientId": CLIENT}

    def declare(end: str = "", *, says_so: bool = True) -> None:
        def entry(name: str, **said: Any) -> dict[str, Any]:
            former = {"previously": [name]} if end and says_so else {}
            return {f"{name}{end}": {"namespace": home, **said, **former}}

        token = {"secret": f"{namespace}/it/token"}
        login = {"kind": "GitLab", "spec": {"projectID": "7"}}
        project.configure(
            credentials={"db": '{"type":"database","password":"sentinel-db"}', "token": "sentinel-token"},
            tenants={"acme": {"namespace": home}},
            pool={"allowDestroy": True},
            existing_namespaces=[namespace],
            further={
                "credfleet:services": {
                    "instances": {
                        **entry("db", credentialsFrom="db", bindings={"bound": {}}),
                        **entry(
                            "queue", credentialsFrom={"secret": f"{namespace}/it"}, bindings={"other": {}}
                        ),
                    },
                    "apps": entry("shop", bindings=[f"db{end}/bound", f"queue{end}/other"]),
                },
                "credfleet:asoCredentials": {
                    "named": {
                        **entry("payments", servicePrincipal={**principal, "secretFrom": "token"}),
                        **entry("ledger", servicePrincipal={**principal, "secretFrom": token}),
                    }
                },
                "credfleet:secretStores": {
                    "providers": {
                        **entry("gitlab", credentialsFrom="token", **login),
                        **entry("referred", credentialsFrom=token, **login),
                    },
                    "stores": entry("ci", providerRef=f"gitlab{end}"),
                },
            },
        )

    def objects() -> dict[str, str]:
        found = admin.resources.get(api_version="v1", kind="Secret").get(namespace=home).to_dict()["items"]
        return {one["metadata"]["name"]: one["metadata"]["uid"] for one in found}

    shared = {"credfleet.io/shared-with": home}
    Secrets(admin, namespace).put("it", {"type": "queue", "token": "sentinel-it"}, annotations=shared)
    declare()
    project.up().quiet()
    before = objects()
    made = {"db", "bound", "bound-env", "queue", "other", "shop-vcap-services", "payments", "ledger"}
    assert made <= before.keys()

    declare("-by-now", says_so=False)
    refused = project.up("--continue-on-error")
    assert refused.code != 0
    for place in ("instances.db", "instances.queue", "apps.shop", "named.payments", "named.ledger"):
        line = f"{place}-by-now.previously[0]' {place.partition('.')[2]}`"
        assert line in " ".join(refused.out.split())
    assert objects() == before

    declare("-by-now")
    preview = project.preview().quiet().out.partition("Resources:")[2]
    assert re.search("create|delete|replace", preview) is None, preview
    project.up().quiet()
    assert objects() == before
    project.preview("--expect-no-changes").quiet()
