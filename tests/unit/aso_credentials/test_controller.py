"""The operator's own settings: exactly the keys that are meant, and its method read back as meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.aso_credentials import keys
from components.aso_credentials.controller import ControllerSettings
from components.aso_credentials.model import (
    ClientSecret,
    Credential,
    Method,
    PodIdentity,
    Unfit,
    WorkloadIdentity,
)
from components.aso_credentials.nouns import Operator, Resource, SecretName
from components.aso_credentials.resolver import resolve

SUB, TENANT, CLIENT = (f"00000000-0000-4000-8000-0000000000{end}" for end in ("aa", "bb", "cc"))
PLACE = SecretName(keys.OPERATOR_NAMESPACE, keys.GLOBAL_SETTINGS)
methods: st.SearchStrategy[Method] = st.sampled_from([ClientSecret("s"), WorkloadIdentity(), PodIdentity()])


def credential(method: Method) -> Credential:
    return Credential(SUB, TENANT, CLIENT, method)


@given(st.none() | methods, st.booleans(), st.booleans())
def test_no_key_is_empty_and_the_operator_reads_what_was_meant(
    method: Method | None, strict: bool, multi_env: bool
) -> None:
    own = None if method is None else credential(method)
    data = ControllerSettings(own, {"AZURE_SYNC_PERIOD": "1h"}, strict, multi_env).emit()
    assert all(data.values())
    operator = Operator().with_settings({PLACE: data})
    assert (operator.strict, operator.multi_env) == (strict, multi_env)
    (resolution,) = resolve([Resource("team", "ResourceGroup", "rg")], {PLACE: data}, Operator())
    assert resolution.method == (None if method is None else method.METHOD)
    assert (resolution.fault is None) == (method is not None)


def test_settings_without_a_credential_hold_only_what_is_said() -> None:
    assert ControllerSettings(plain={"AZURE_SYNC_PERIOD": "never"}).emit() == {"AZURE_SYNC_PERIOD": b"never"}
    assert ControllerSettings().emit() == {}


@pytest.mark.parametrize(
    ("method", "emitted"),
    [
        (ClientSecret("s"), {"AZURE_CLIENT_SECRET"}),
        (WorkloadIdentity(), {"USE_WORKLOAD_IDENTITY_AUTH"}),
        (PodIdentity(), set[str]()),
    ],
)
def test_the_operators_own_method_is_said_by_keys_of_its_own(method: Method, emitted: set[str]) -> None:
    assert set(ControllerSettings(credential(method)).emit()) == {*keys.REQUIRED, *emitted}


def test_the_operator_itself_is_never_in_strict_mode_w6() -> None:
    with pytest.raises(Unfit, match="its own ServiceAccount"):
        ControllerSettings(credential(WorkloadIdentity(strict=True)))
