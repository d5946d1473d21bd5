"""The projection of a Secret in the genuine host, on a real API server."""

import base64
from pathlib import Path
from typing import Any

import grpc
import pytest

from components.projection.model import digests
from components.projection.provider import SecretProjectionProvider
from tests.support.cases import tabled
from tests.support.dynamic_host import Properties, Provider, dynamic_host, provided
from tests.support.secrets import Secrets

SENTINEL = "s3ntinel-of-a-credential"
GUID = "00000000-0000-4000-8000-000000000001"
AZURE = {"subscriptionID": GUID, "tenantID": GUID, "clientID": GUID, "clientSecret": SENTINEL}


provider = provided(SecretProjectionProvider)


def projection(secrets: Secrets | None = None, **more: Any) -> Properties:
    namespace = "pool" if secrets is None else secrets.namespace
    return {
        "sourceNamespace": namespace,
        "sourceName": "account",
        "sourceLabels": {},
        "targetNamespace": namespace,
        "targetName": "copy",
        "owner": "pulumi/o/p/s/acme/aws",
        "keys": {},
        **more,
    }


def test_a_copy_is_made_followed_and_removed_and_no_byte_leaves_the_cluster(
    provider: Provider, secrets: Secrets
) -> None:
    secrets.put("account", {"key": SENTINEL})
    made = provider.create(projection(secrets))
    assert secrets.data("copy") == {"key": SENTINEL}
    assert made.outputs["reference"] == f"{secrets.namespace}/copy"
    assert not provider.is_changed(made, projection(secrets))
    secrets.change("account", "key", "rotated")
    assert provider.is_changed(made, projection(secrets))
    followed = provider.update(made, projection(secrets))
    assert secrets.data("copy") == {"key": "rotated"}
    assert followed.outputs["digest"] != made.outputs["digest"]
    assert SENTINEL not in repr((made, followed))
    assert base64.b64encode(SENTINEL.encode()).decode() not in repr((made, followed))
    provider.delete(followed)
    assert "copy" not in secrets.names()
    provider.delete(followed)


def test_a_preview_that_declares_the_source_foresees_the_copy(provider: Provider, secrets: Secrets) -> None:
    encoded = {key: base64.b64encode(key.encode()).decode() for key in ("old", "new")}
    foreseen = {word: digests({"key": value}) for word, value in encoded.items()}
    secrets.put("account", {"key": "old"})
    made = provider.create(projection(secrets))
    assert not provider.is_changed(made, projection(secrets, foreseen=foreseen["old"]))
    assert provider.is_changed(made, projection(secrets, foreseen=foreseen["new"]))
    assert "foreseen" not in {**made.inputs, **made.outputs}


def test_what_is_written_is_booked_under_its_own_manager(provider: Provider, secrets: Secrets) -> None:
    secrets.put("account", {"key": "x"})
    provider.create(projection(secrets))
    managed = secrets.live("copy")["metadata"]["managedFields"]
    assert {entry["manager"] for entry in managed} == {"credfleet-projection"}


def test_a_refresh_sees_a_copy_changed_by_hand_and_an_update_fixes_it(
    provider: Provider, secrets: Secrets
) -> None:
    secrets.put("account", {"key": "x"})
    made = provider.create(projection(secrets))
    secrets.change("copy", "key", "tampered")
    seen = provider.refresh(made)
    assert seen.outputs["digest"] != made.outputs["digest"]
    assert provider.is_changed(seen, projection(secrets))
    provider.update(seen, projection(secrets))
    assert secrets.data("copy") == {"key": "x"}


def test_a_copy_deleted_by_hand_is_gone_on_refresh_and_made_again_without_one(
    provider: Provider, secrets: Secrets
) -> None:
    secrets.put("account", {"key": "x"})
    made = provider.create(projection(secrets))
    secrets.remove("copy")
    assert provider.refresh(made).id == ""
    assert provider.is_changed(made, projection(secrets))
    provider.update(made, projection(secrets))
    assert secrets.data("copy") == {"key": "x"}


def test_somebody_elses_secret_is_refused_in_a_preview_and_left_alone(
    provider: Provider, secrets: Secrets
) -> None:
    secrets.put("account", {"key": "x"})
    secrets.put("copy", {"theirs": "y"})
    (said,) = provider.refusals(projection(secrets))
    assert said.startswith(f"Secret {secrets.namespace}/copy: it exists and this claim did not write it")
    assert secrets.data("copy") == {"theirs": "y"}


def test_a_copy_that_was_taken_over_by_somebody_else_is_not_deleted(
    provider: Provider, secrets: Secrets
) -> None:
    secrets.put("account", {"key": "x"})
    made = provider.create(projection(secrets))
    secrets.remove("copy")
    secrets.put("copy", {"theirs": "y"})
    assert provider.refresh(made).id == ""
    provider.delete(made)
    assert secrets.data("copy") == {"theirs": "y"}


def test_another_method_takes_the_keys_of_the_former_one_away(provider: Provider, secrets: Secrets) -> None:
    secrets.put("account", AZURE)
    made = provider.create(projection(secrets, asoCredential="servicePrincipalSecret"))
    assert "AZURE_CLIENT_SECRET" in secrets.data("copy")
    provider.update(made, projection(secrets, asoCredential="workloadIdentity"))
    assert secrets.data("copy").keys() == {
        "AZURE_SUBSCRIPTION_ID",
        "AZURE_TENANT_ID",
        "AZURE_CLIENT_ID",
    }


def test_an_unfit_value_is_refused_when_it_is_written_without_showing_it(
    provider: Provider, secrets: Secrets
) -> None:
    secrets.put("account", {**AZURE, "clientID": SENTINEL})
    with pytest.raises(grpc.RpcError) as refused:
        provider.create(projection(secrets, asoCredential="servicePrincipalSecret"))
    said = str(refused.value.details())
    assert f"RunError: value-unfit: Secret {secrets.namespace}/account, key clientID: " in said
    assert SENTINEL not in said
    assert "copy" not in secrets.names()


@tabled("wrong, said")
def test_what_can_never_be_written_is_refused_in_a_preview(
    provider: Provider, wrong: Properties, said: str
) -> None:
    (reason,) = provider.refusals(projection(**wrong))
    assert said in reason


def test_what_a_failed_claim_would_have_told_is_no_mistake_of_its_copy(
    provider: Provider, secrets: Secrets
) -> None:
    wanted = projection(secrets)
    told = {key: value for key, value in wanted.items() if key not in ("sourceNamespace", "sourceName")}
    provider.check(told)
    assert provider.refusals({**told, "sourceName": "No Name"})


def test_another_target_is_another_copy_made_before_the_first_is_removed(
    provider: Provider, secrets: Secrets
) -> None:
    secrets.put("account", {"key": "x"})
    made = provider.create(projection(secrets))
    answer = provider.diff(made, projection(secrets, targetName="other"))
    assert (list(answer.replaces), answer.deleteBeforeReplace) == (["targetName"], False)


def test_a_cluster_that_is_not_there_lets_a_preview_pass_and_an_update_not(tmp_path: Path) -> None:
    with dynamic_host({"cluster": {"kubeconfig": str(tmp_path / "none")}}) as host:
        provider = host.provider(SecretProjectionProvider())
        inputs = provider.check(projection())
        with pytest.raises(grpc.RpcError) as refused:
            provider.create(inputs)
    assert "RunError: misconfigured: kubeconfig " in str(refused.value.details())
