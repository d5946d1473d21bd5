"""The operator's own settings: exactly the keys that are meant, and its method read back as meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from components.aso_credentials import keys
from components.aso_credentials.operator_settings import GlobalSettings
from components.aso_credentials.operator_settings import Operator as Given
from components.aso_credentials.resolution import Operator, Resource
from components.aso_credentials.resolver import resolve
from components.projection.model import SecretRef

SUB, TENANT, CLIENT = (f"00000000-0000-4000-8000-0000000000{end}" for end in ("aa", "bb", "cc"))
PLACE = SecretRef(keys.OPERATOR_NAMESPACE, keys.GLOBAL_SETTINGS)
IDS = {"subscriptionId": SUB, "tenantId": TENANT, "clientId": CLIENT}
SECRET = {"servicePrincipal": {**IDS, "secretFrom": "x"}}
TOKEN = {"workloadIdentity": IDS}
POD = {"podIdentity": IDS}


def emitted(
    credential: dict[str, Any] | None, *, strict: bool = False, multi_env: bool = False, **given: Any
) -> Mapping[str, bytes]:
    """The data of the settings; a client secret is `s`."""
    settings = GlobalSettings.model_validate({**given, "credential": credential})
    own = settings.credential
    mode = "strict" if strict else "relaxed"
    operator = Given.model_validate({"workloadIdentityMode": mode, "multiEnv": multi_env})
    return settings.data(operator, own.data([b"s"] if own.sources else []) if own else {})


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("multi_env", [True, False])
@pytest.mark.parametrize(
    ("credential", "method"),
    [(None, None), (SECRET, "servicePrincipalSecret"), (TOKEN, "workloadIdentity"), (POD, "podIdentity")],
    ids=["none", "secret", "token", "pod"],
)
def test_only_ids_are_empty_and_the_operator_reads_what_was_meant(
    credential: dict[str, Any] | None, method: str | None, *, strict: bool, multi_env: bool
) -> None:
    data = emitted(credential, strict=strict, multi_env=multi_env, syncPeriod="1h")
    empty = {key for key, value in data.items() if not value}
    assert empty == ({*keys.REQUIRED} if credential is None else set())
    operator = Operator().with_settings({PLACE: data})
    assert (operator.strict, operator.multi_env) == (strict, multi_env)
    (resolution,) = resolve([Resource("team", "ResourceGroup", "rg")], {PLACE: data}, Operator())
    assert resolution.method == method
    assert (resolution.fault is None) == (method is not None)


def test_settings_without_a_credential_hold_the_ids_empty_and_what_is_said() -> None:
    ids = dict.fromkeys(keys.REQUIRED, b"")
    assert emitted(None, syncPeriod="never") == {**ids, "AZURE_SYNC_PERIOD": b"never"}
    assert emitted(None) == ids


@pytest.mark.parametrize(
    ("credential", "own"),
    [(SECRET, {"AZURE_CLIENT_SECRET"}), (TOKEN, {"USE_WORKLOAD_IDENTITY_AUTH"}), (POD, set[str]())],
    ids=["secret", "token", "pod"],
)
def test_the_operators_own_method_is_said_by_keys_of_its_own(
    credential: dict[str, Any], own: set[str]
) -> None:
    assert set(emitted(credential)) == {*keys.REQUIRED, *own}
