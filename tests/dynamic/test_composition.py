"""Secrets made of others in the cluster, in the genuine host on a real API server: who may read what."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from components.aso_credentials.provider import AsoProjectionProvider
from components.service_credentials.provider import ServiceSecretProvider
from tests.support.cases import tabled
from tests.support.certificates import pem
from tests.support.dynamic_host import Properties, Provider, provided
from tests.support.secrets import Secrets

SENTINEL = "s3ntinel-of-a-source"
PLACE = "credfleet:services.instances.db.credentialsFrom"
IDS = {
    f"AZURE_{key}_ID": f"00000000-0000-4000-8000-0000000000{end}"
    for key, end in (("SUBSCRIPTION", "aa"), ("TENANT", "bb"), ("CLIENT", "cc"))
}


provider = provided(ServiceSecretProvider)
aso = provided(AsoProjectionProvider)


@pytest.fixture
def others(admin: Any, namespace: str) -> Secrets:
    """Another tenant's namespace."""
    name = f"{namespace}-others"
    admin.resources.get(api_version="v1", kind="Namespace").create(body={"metadata": {"name": name}})
    return Secrets(admin, name)


def source(secrets: Secrets, name: str = "given", **more: Any) -> Properties:
    return {"namespace": secrets.namespace, "name": name, "place": PLACE, "declared": False, **more}


def wanted(secrets: Secrets, form: str = "binding", *sources: Properties, **more: Any) -> Properties:
    bound = {"instance_guid": "i", "instance_name": "db", "binding_guid": "b", "tags": [], "label": "sql"}
    given = [*sources] or [source(secrets)]
    one = {"numbers": "float", "strict": False, "bound": bound, "takesFile": False}
    return {
        "namespace": secrets.namespace,
        "targetName": "made",
        "owner": "pulumi/o/p/s/services/db",
        "sources": given,
        "recipe": {"form": form, "instances": [one for _ in given]},
        "labels": {},
        "content": "",
        **more,
    }


def test_the_keys_of_a_secret_become_a_binding_and_no_byte_leaves_the_cluster(
    provider: Provider, secrets: Secrets
) -> None:
    secrets.put("given", {"type": "postgresql", "password": SENTINEL})
    made = provider.create(wanted(secrets))
    assert secrets.data("made") == {"type": "postgresql", "password": SENTINEL}
    assert secrets.live("made")["type"] == made.outputs["type"] == "servicebinding.io/postgresql"
    assert not provider.is_changed(made, wanted(secrets))
    assert SENTINEL not in repr(made)
    assert base64.b64encode(SENTINEL.encode()).decode() not in repr(made)
    provider.delete(made)
    assert secrets.names() == {"given"}


def test_a_source_that_is_rotated_is_followed_without_another_change(
    provider: Provider, secrets: Secrets
) -> None:
    secrets.put("given", {"type": "a", "password": "1"})
    made = provider.create(wanted(secrets))
    secrets.change("given", "password", "2")
    assert provider.is_changed(made, wanted(secrets))
    followed = provider.update(made, wanted(secrets))
    assert secrets.data("made")["password"] == "2"
    assert not provider.is_changed(followed, wanted(secrets))
    secrets.change("given", "type", "b")
    again = provider.update(followed, wanted(secrets))
    assert secrets.live("made")["type"] == again.outputs["type"] == "servicebinding.io/b"


def test_an_application_is_made_of_all_its_sources_in_their_order(
    provider: Provider, secrets: Secrets
) -> None:
    secrets.put("given", {"uri": "1"})
    secrets.put("second", {"uri": "2"})
    given = wanted(secrets, "application", source(secrets), source(secrets, "second"))
    provider.create(given)
    told = json.loads(secrets.data("made")["VCAP_SERVICES"])["sql"]
    assert [one["credentials"]["uri"] for one in told] == ["1", "2"]
    secrets.change("second", "uri", "x" * 140_000)
    (reason,) = provider.refusals(given)
    assert "set file: true" in reason


def test_what_the_stack_itself_is_about_to_write_is_waited_for(provider: Provider, secrets: Secrets) -> None:
    given = wanted(secrets, "application", source(secrets, declared=True))
    assert provider.refusals(given) == []


@tabled("annotation, allowed")
def test_another_namespaces_secret_is_read_only_where_its_owner_shares_it(
    provider: Provider, secrets: Secrets, others: Secrets, annotation: str | None, allowed: bool
) -> None:
    shared = None if annotation is None else annotation.replace("{}", secrets.namespace)
    others.put(
        "given", {"type": "x", "password": SENTINEL}, annotations={"credfleet.io/shared-with": shared or ""}
    )
    given = wanted(secrets, "binding", source(others))
    said = provider.refusals(given)
    absent = provider.refusals(wanted(secrets, "binding", source(others, "nothing")))
    if allowed:
        assert said == []
        provider.create(given)
        assert secrets.data("made")["password"] == SENTINEL
    else:
        assert said == [each.replace("nothing", "given") for each in absent]
        assert f"credfleet.io/shared-with: {secrets.namespace}" in said[0]
        assert "password" not in said[0]


def test_a_secret_that_is_shared_no_more_is_not_followed(
    provider: Provider, secrets: Secrets, others: Secrets, api: Any
) -> None:
    others.put("given", {"a": "1"}, annotations={"credfleet.io/shared-with": secrets.namespace})
    given = wanted(secrets, "binding", source(others))
    made = provider.create(given)
    body = {"metadata": {"annotations": {"credfleet.io/shared-with": None}}}
    where = {"name": "given", "namespace": others.namespace}
    api.patch(**where, body=body, content_type="application/merge-patch+json")
    assert len(provider.refusals(given, made.inputs)) == 1


@pytest.mark.parametrize(("owner", "allowed"), [("acme", True), ("globex", False)])
def test_an_account_is_read_only_while_it_is_the_tenants(
    provider: Provider, secrets: Secrets, others: Secrets, owner: str, allowed: bool
) -> None:
    others.put("given", {"a": "1"}, labels={"tenant-name": owner})
    given = wanted(secrets, "binding", source(others, labels={"tenant-name": "acme"}))
    assert (provider.refusals(given) == []) is allowed


@tabled("values, key, said")
def test_a_source_that_cannot_be_used_is_told_in_a_preview_with_its_place(
    provider: Provider, secrets: Secrets, values: dict[str, str], key: str | None, said: str
) -> None:
    if values:
        secrets.put("given", values)
    named = {} if key is None else {"key": key}
    (reason,) = provider.refusals(wanted(secrets, "binding", source(secrets, **named)))
    assert reason.startswith(PLACE)
    assert said in reason
    assert SENTINEL not in reason


def credential(secrets: Secrets, *proofs: str, **source_: Any) -> Properties:
    place = "credfleet:asoCredentials.namespaces.team-a.servicePrincipal.secretFrom"
    recipe = {
        "plain": {**IDS, "AZURE_SYNC_PERIOD": "1h"},
        "proofs": [*proofs],
        "settings": ["AZURE_SYNC_PERIOD"],
        "strict": False,
    }
    given = wanted(secrets, "", source(secrets, **source_))
    return {**given, "sources": [{**given["sources"][0], "place": place}], "recipe": recipe}


def test_a_credential_of_aso_has_its_ids_and_the_secret_that_is_there(
    aso: Provider, secrets: Secrets
) -> None:
    secrets.put("given", {"clientSecret": SENTINEL, "more": "x"})
    made = aso.create(credential(secrets, "AZURE_CLIENT_SECRET"))
    plain = {**IDS, "AZURE_SYNC_PERIOD": "1h"}
    assert secrets.data("made") == {**plain, "AZURE_CLIENT_SECRET": SENTINEL}
    assert SENTINEL not in repr(made)
    secrets.change("given", "clientSecret", "rotated")
    assert aso.is_changed(made, credential(secrets, "AZURE_CLIENT_SECRET"))


def test_a_certificate_is_judged_where_it_is(aso: Provider, secrets: Secrets) -> None:
    secrets.put("given", {"good": pem().decode(), "folded": pem().decode().replace("\n", " ")})
    assert aso.refusals(credential(secrets, "AZURE_CLIENT_CERTIFICATE", key="good")) == []
    (reason,) = aso.refusals(credential(secrets, "AZURE_CLIENT_CERTIFICATE", key="folded"))
    assert "servicePrincipal.secretFrom: AZURE_CLIENT_CERTIFICATE" in reason
