"""What the secret stores of a stack register, to the letter, with ESO in the cluster and without."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pytest

from components.credentials import Credentials
from components.projection.model import SecretRef
from components.secret_stores.component import SecretStores, SecretStoresArgs
from components.secret_stores.settings import SecretStoresSection
from tests.support.cases import table
from tests.support.recorder import Recorder, Registration, Secret, Unknown, record

READ = "pulumi-python:dynamic/credfleet:SecretRead"
PUSH = "pulumi-python:dynamic/credfleet:SecretPush"
LOOKOUT = "pulumi-python:dynamic/credfleet:EsoLookout"
DELIVERY = "pulumi-python:dynamic/credfleet:EsoDelivery"
STORES = "credfleet:index:SecretStores"
SECRET = "kubernetes:core/v1:Secret"
CLAIM = "test:index:Claim"
ESO = ["external-secrets.io/v1/ClusterSecretStore", "external-secrets.io/v1/ExternalSecret"]
PUSHES = "external-secrets.io/v1alpha1/PushSecret"
ALL = [*ESO, "external-secrets.io/v1/SecretStore"]
TOKEN = base64.b64encode(b"token").decode()

CLAIMED = {"key": {"account": "acme/aws", "key": "secretAccessKey"}}
SECTION = SecretStoresSection.model_validate(table(__file__, "SECTION"))


class Claim(pulumi.CustomResource):
    """Stands for a claim: which Secret it got is known once it is made."""

    secret_name: pulumi.Output[str]

    def __init__(self) -> None:
        super().__init__(CLAIM, "claim", {"secret_name": None})


def declared(
    served: Sequence[str] = (),
    *,
    preview: bool = False,
    undelivered: Mapping[str, str] | None = None,
    section: SecretStoresSection = SECTION,
    refused: Mapping[str, str] | None = None,
    foreseen: Mapping[str, str] | None = None,
    copied: Mapping[str, str] | None = None,
) -> Recorder:
    """A read by each back end, a push, and a store with a credential of its own."""

    def program() -> None:
        claim = Claim()
        args = SecretStoresArgs(
            section=section,
            credentials=Credentials({"gitlab": "token"}),
            tenants={"acme": "acme"},
            namespace=lambda name: name,
            claimed=lambda _account: claim.secret_name,
            delivered=lambda account: account.replace("/", "-"),
            foreseen={} if foreseen is None else {"acme/aws": pulumi.Output.from_input(foreseen)},
            copied={} if copied is None else {"acme/aws": pulumi.Output.from_input(copied)},
            copies={SecretRef("acme", "db"): pulumi.Output.from_input(claim)},
        )
        pulumi.export("skipped", SecretStores("stores", args).skipped)

    outputs: Any = {LOOKOUT: {"kinds": [*served], "refused": refused}, DELIVERY: {"undelivered": undelivered}}
    if not preview:
        outputs[CLAIM] = {"secret_name": "aws-1"}
    return record(program, preview=preview, outputs=outputs)


def eso_objects(recorder: Recorder) -> dict[str, Registration]:
    found = [one for one in recorder.registrations if one.type.startswith("kubernetes:external-secrets.io/")]
    return {one.name: one for one in found}


def test_a_login_that_is_elsewhere_is_made_there_and_the_store_comes_after_it() -> None:
    version = "projects/p/secrets/gitlab/versions/latest"
    given = SECTION.model_dump(by_alias=True, exclude_unset=True)
    given["providers"]["gitlab"]["credentialsFrom"] = {"gcpSecret": version}
    recorder = declared(ALL, section=SecretStoresSection.model_validate(given))
    (login,) = recorder.of_type("pulumi-python:dynamic/credfleet:LoginSecret").values()
    place = "credfleet:secretStores.providers.gitlab.credentialsFrom"
    assert login.inputs["targetName"] == "gitlab-credentials"
    assert login.inputs["recipe"] == {"keys": ["token"]}
    assert login.inputs["sources"] == [{"place": place, "declared": False, "version": version}]
    assert not recorder.of_type("kubernetes:core/v1:Secret")
    assert login.urn in eso_objects(recorder)["stores/ci-store"].dependencies


def test_only_the_object_of_a_refused_place_has_hooks_that_refuse_it() -> None:
    recorder = declared(ALL, refused={"credfleet:secretStores.reads.token": "it is refused"})
    hooked = {
        name: (len(one.request.hooks.before_create), len(one.request.hooks.before_update))
        for name, one in eso_objects(recorder).items()
    }
    assert {name for name, counts in hooked.items() if any(counts)} == {"stores/token-read"}
    assert hooked["stores/token-read"] == (1, 1)


def test_a_direct_read_states_references_and_nothing_else() -> None:
    recorder = declared()
    assert recorder.named(READ, "stores/direct-read").own_inputs == table(__file__, "READ")


def test_push_of_a_copy_that_the_stack_makes_comes_after_it() -> None:
    recorder = declared()
    (claim,) = recorder.of_type(CLAIM).values()
    assert claim.urn in recorder.named(PUSH, "stores/out-push").dependencies


def test_a_credential_is_drawn_as_a_secret_value() -> None:
    drawn = declared().named(SECRET, "stores/gitlab-credential")
    assert drawn.inputs["data"] == Secret({"token": TOKEN})
    assert drawn.inputs["metadata"] == {"name": "gitlab-credentials", "namespace": "acme"}


@pytest.mark.parametrize("source", ["gitlab", {"gcpSecret": "projects/p/secrets/x/versions/latest"}])
def test_the_secret_that_a_webhook_logs_in_with_has_the_label_that_eso_demands(source: Any) -> None:
    given = SECTION.model_dump(by_alias=True, exclude_unset=True)
    hook = {"kind": "Webhook", "namespace": "acme", "spec": {"url": "https://x"}, "credentialsFrom": source}
    recorder = declared(
        section=SecretStoresSection.model_validate(
            {**given, "providers": {**given["providers"], "hook": hook}}
        )
    )
    (drawn,) = [
        one for one in recorder.registrations if one.name in ("stores/hook-credential", "stores/hook-login")
    ]
    labels = drawn.inputs["metadata"]["labels"] if source == "gitlab" else drawn.inputs["labels"]
    assert labels == {"external-secrets.io/type": "webhook"}


def test_without_eso_its_objects_are_skipped_with_the_reason_and_the_rest_is_declared() -> None:
    recorder = declared()
    assert eso_objects(recorder) == {}
    assert recorder.stack_outputs["skipped"] == {
        title: f"the cluster does not serve external-secrets.io/v1/{kind}: install External Secrets Operator,"
        " then update again"
        for title, kind in (
            ("ClusterSecretStore shared", "ClusterSecretStore"),
            ("SecretStore ci", "SecretStore"),
            ("ExternalSecret eso", "ExternalSecret"),
            ("ExternalSecret token", "ExternalSecret"),
        )
    }
    assert set(recorder.of_type(PUSH)) == {"stores/out-push"}


def test_with_eso_its_objects_are_declared() -> None:
    recorder = declared(ALL)
    objects = eso_objects(recorder)
    assert set(objects) == {"stores/shared-store", "stores/ci-store", "stores/eso-read", "stores/token-read"}
    assert recorder.stack_outputs["skipped"] == {}
    delivery = recorder.named(DELIVERY, "stores-eso-delivery")
    assert {*delivery.dependencies} >= {one.urn for one in objects.values()}
    assert delivery.own_inputs["within"] == "30s"
    assert [each["name"] for each in delivery.own_inputs["objects"]] == ["shared", "ci", "eso", "token"]
    assert delivery.own_inputs["objects"][2] == table(__file__, "DELIVERED")
    read = objects["stores/eso-read"]
    assert read.inputs["metadata"] == {"name": "eso", "namespace": "acme"}
    assert read.inputs["spec"]["secretStoreRef"] == {"kind": "ClusterSecretStore", "name": "shared"}
    assert read.inputs["spec"]["data"] == [
        {"secretKey": "key", "remoteRef": {"key": "aws-1", "property": "secretAccessKey"}}
    ]


def test_the_lookout_is_told_which_secrets_eso_is_to_make() -> None:
    told = declared().named(LOOKOUT, "stores-eso").own_inputs
    assert told["reads"] == [
        {
            "place": f"credfleet:secretStores.reads.{name}",
            "namespace": "acme",
            "name": name,
            "target": name,
            "owner": f"pulumi/organization/credfleet/dev/secretStores/reads/{name}",
        }
        for name in ("eso", "token")
    ]
    assert told["callers"] == []


def test_a_push_of_several_secrets_is_one_object_of_eso_for_each() -> None:
    values = {
        "first": {"secret": "db", "key": "k", "property": "p"},
        "second": {"account": "acme/aws", "key": "k", "property": "q"},
        "third": {"secret": "db", "key": "l", "property": "r"},
    }
    push = {"out": {"namespace": "acme", "store": "shared", "backend": "eso", "data": values}}
    recorder = declared([*ALL, PUSHES], section=SECTION.model_copy(update=_pushes(push)))
    specs = {name: one.inputs for name, one in eso_objects(recorder).items() if name.endswith("-push")}
    assert {
        name: (
            one["metadata"]["name"],
            one["spec"]["selector"]["secret"]["name"],
            [each["match"]["remoteRef"]["remoteKey"] for each in one["spec"]["data"]],
        )
        for name, one in specs.items()
    } == {
        "stores/out-push": ("out", "db", ["first", "third"]),
        "stores/out/acme/aws-push": ("out-acme-aws", "acme-aws", ["second"]),
    }
    marks = {
        str(each["metadata"]["spec"]["annotations"]) for one in specs.values() for each in one["spec"]["data"]
    }
    assert len(marks) == 1
    told = recorder.named(LOOKOUT, "stores-eso").own_inputs["pushes"]
    assert {each["place"] for each in told} == {"credfleet:secretStores.pushes.out"}
    assert [each["push"]["name"] for each in told] == ["out", "out-acme-aws"]


def several(backend: str, former: Sequence[str] = ()) -> Recorder:
    """Push to two stores, the second of which may have had other names."""
    values = {"k": {"secret": "db", "key": "k", "property": "p"}}
    push = {"namespace": "acme", "store": "shared", "stores": ["other"], "backend": backend, "data": values}
    given = SECTION.model_dump(by_alias=True, exclude_unset=True)
    providers = {"it": given["providers"]["it"], "far": given["providers"]["it"]}
    other = {"cluster": True, "providerRef": "far", "previously": [*former]}
    section = {"providers": providers, "stores": {"shared": given["stores"]["shared"], "other": other}}
    whole = SecretStoresSection.model_validate({**section, "pushes": {"out": push}})
    return declared([*ALL, PUSHES], section=whole)


def test_a_push_to_several_stores_is_one_for_each_which_owns_its_own() -> None:
    owner = "pulumi/organization/credfleet/dev/secretStores/pushes/out"
    direct = several("direct", ["first"]).of_type(PUSH)
    assert {
        name: (each.own_inputs["owner"], each.own_inputs["provider"]["name"], each.own_inputs["push"]["name"])
        for name, each in direct.items()
    } == {
        "stores/out-push": (owner, "it", "out"),
        "stores/out/other-push": (f"{owner}/first", "far", "out-other"),
    }
    (alias,) = direct["stores/out/other-push"].request.aliases
    assert alias.spec.name == "stores/out/first-push"
    by_eso = [one for name, one in eso_objects(several("eso")).items() if name.endswith("-push")]
    assert [
        (one.name, one.inputs["metadata"]["name"], one.inputs["spec"]["secretStoreRefs"]) for one in by_eso
    ] == [
        ("stores/out-push", "out", [{"kind": "ClusterSecretStore", "name": "shared"}]),
        ("stores/out/other/db-push", "out-other-db", [{"kind": "ClusterSecretStore", "name": "other"}]),
    ]
    marks = [each["metadata"]["spec"]["annotations"] for one in by_eso for each in one.inputs["spec"]["data"]]
    assert [*marks[0].values(), *marks[1].values()] == [owner, f"{owner}/other"]


def _pushes(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"pushes": SecretStoresSection.model_validate({"pushes": given}).pushes}


def test_what_eso_has_not_done_is_told_beside_what_is_left_out() -> None:
    recorder = declared(ESO, undelivered={"ExternalSecret eso": "not yet"})
    assert recorder.stack_outputs["skipped"]["ExternalSecret eso"] == "not yet"
    assert recorder.stack_outputs["skipped"]["ExternalSecret token"] == "the store it names is left out"


def test_what_uses_a_thing_depends_on_it_so_that_a_destroy_takes_it_first() -> None:
    recorder = declared(ALL)
    objects = eso_objects(recorder)
    credential = recorder.named(SECRET, "stores/gitlab-credential")
    assert credential.urn in objects["stores/ci-store"].dependencies
    assert objects["stores/ci-store"].urn in objects["stores/token-read"].dependencies
    assert objects["stores/shared-store"].urn in objects["stores/eso-read"].dependencies
    parent = recorder.named(STORES, "stores").urn
    assert {one.parent for one in recorder.registrations if one.type not in (STORES, CLAIM)} == {parent}


def test_a_preview_shows_every_object_and_leaves_open_what_a_claim_decides() -> None:
    recorder = declared(ALL, preview=True)
    data = recorder.named(READ, "stores/direct-read").inputs["read"]["data"]
    assert data == {"key": {"key": Unknown(), "property": "secretAccessKey"}}
    objects = eso_objects(recorder)
    assert {name: isinstance(one.inputs["spec"], Unknown) for name, one in objects.items()} == {
        "stores/shared-store": False,
        "stores/ci-store": False,
        "stores/eso-read": True,
        "stores/token-read": False,
    }


@pytest.mark.parametrize("strategy", [None, "None", "Base64"])
def test_a_preview_foresees_an_account_in_its_reads_unless_they_decode_it(strategy: str | None) -> None:
    value = {**CLAIMED["key"], **({"decodingStrategy": strategy} if strategy else {})}
    direct = SECTION.reads["direct"].model_dump(by_alias=True, exclude_unset=True)
    section = {**SECTION.model_dump(by_alias=True, exclude_unset=True), "pushes": {}}
    section["reads"] = {"direct": {**direct, "data": {"key": value}}}
    inputs = (
        declared(
            section=SecretStoresSection.model_validate(section),
            foreseen={"secretAccessKey": "digest"},
        )
        .named(READ, "stores/direct-read")
        .own_inputs
    )
    assert inputs.get("foreseen") == (None if strategy == "Base64" else {"copy": {"key": "digest"}})
    remote = {"key": "aws-1", "property": "secretAccessKey"}
    assert inputs["read"]["data"]["key"] == remote | ({"decodingStrategy": strategy} if strategy else {})


def test_a_preview_foresees_of_a_template_what_is_an_accounts_value_alone() -> None:
    given = SECTION.model_dump(by_alias=True, exclude_unset=True) | {"pushes": {}}
    template = {"secret": "{{- .key }}", "text": "x{{ .key }}", "all": "{{ .key }}{{ .key }}"}
    given["reads"] = {"direct": {**given["reads"]["direct"], "template": template}}
    recorder = declared(
        section=SecretStoresSection.model_validate(given), foreseen={"secretAccessKey": "digest"}
    )
    inputs = recorder.named(READ, "stores/direct-read").own_inputs
    assert inputs["foreseen"] == {"copy": {"secret": "digest"}}
    assert inputs["read"]["template"] == template


def test_a_preview_foresees_all_keys_of_an_account_where_a_push_has_them() -> None:
    given = {"namespace": "acme", "store": "shared", "data": {"k": {"account": "acme/aws", "property": "p"}}}
    digests = {"id": "one", "key": "two"}
    section = SECTION.model_copy(update=_pushes({"out": given}))
    inputs = declared(section=section, copied=digests).named(PUSH, "stores/out-push").own_inputs
    assert inputs["foreseen"] == {"acme-aws": digests}
    assert "key" not in inputs["push"]["data"][0]


def test_names_of_objects_are_their_own_and_the_state_goes_by_keys() -> None:
    """Two namespaces with a store, a provider with its credential and a read of one name each."""
    section: dict[str, Any] = {
        "providers": {
            f"{team}-ci": {
                "kind": "GitLab",
                "namespace": team,
                "name": "ci",
                "credentialsFrom": "gitlab",
                "spec": {"projectID": "7"},
            }
            for team in ("acme", "globex")
        },
        "stores": {
            **{
                f"{team}-vault": {"namespace": team, "name": "vault", "providerRef": f"{team}-ci"}
                for team in ("acme", "globex")
            },
            "whose": {"cluster": True, "callersProvider": {"kind": "GitLab", "name": "ci"}},
        },
        "reads": {
            f"{team}-{store}": {
                "namespace": team,
                "name": store,
                "store": key,
                "backend": backend,
                "data": data,
            }
            for team in ("acme", "globex")
            for store, key, backend in (("vault", f"{team}-vault", "eso"), ("whose", "whose", "direct"))
            for data in [{"t": {"key": "T"}}]
        },
    }
    recorder = declared(ALL, section=SecretStoresSection.model_validate(section))
    for team in ("acme", "globex"):
        credential = recorder.named(SECRET, f"stores/{team}-ci-credential")
        assert credential.inputs["metadata"] == {"name": "ci-credentials", "namespace": team}
        store = recorder.named("kubernetes:external-secrets.io/v1:SecretStore", f"stores/{team}-vault-store")
        assert store.inputs["metadata"]["name"] == "vault"
        assert store.inputs["metadata"]["annotations"] == {"credfleet.io/provider": f"GitLab/{team}/ci"}
        read = recorder.named("kubernetes:external-secrets.io/v1:ExternalSecret", f"stores/{team}-vault-read")
        assert read.inputs["metadata"]["name"] == "vault"
        assert read.inputs["spec"]["secretStoreRef"] == {"kind": "SecretStore", "name": "vault"}
        direct = recorder.named(READ, f"stores/{team}-whose-read")
        assert (direct.inputs["target"], direct.inputs["provider"]["namespace"]) == ("whose", team)
        assert credential.urn in direct.dependencies
