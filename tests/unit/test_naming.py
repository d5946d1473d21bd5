"""Labels of tenants, names and holder ids are valid and never shared by two."""

import re
import string
from collections.abc import Callable

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from components.naming import (
    LABEL_VALUE_LIMIT,
    NAMESPACE_LIMIT,
    OBJECT_NAME_LIMIT,
    config_path,
    is_data_key,
    is_label_key,
    is_label_value,
    is_namespace,
    is_object_name,
    stack_holder,
    tenant_label,
)

LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
tenants = st.text(min_size=1).filter(lambda text: text == text.strip())


@given(tenants)
@example("x" * 64)
@example("a,shared=true")
@example("UPPER_ok")
@example("enc-abc")
def test_the_label_of_any_tenant_is_a_label_value_that_cannot_change_a_selector(tenant: str) -> None:
    label = tenant_label(tenant)

    assert LABEL_VALUE.fullmatch(label)
    assert 0 < len(label) <= LABEL_VALUE_LIMIT


@given(tenants, tenants)
@example("acme", "ACME")
@example("enc-acme", "acme")
def test_two_tenants_never_share_a_label(one: str, other: str) -> None:
    assume(one != other)

    assert tenant_label(one) != tenant_label(other)


@given(st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", fullmatch=True))
def test_a_tenant_that_is_a_label_value_keeps_its_name(tenant: str) -> None:
    assume(not tenant.startswith("enc-"))

    assert tenant_label(tenant) == tenant


def test_an_encoded_tenant_is_its_sha256_in_base32() -> None:
    assert tenant_label("Müller & Söhne") == "enc-nwnctplxg524q6cmucbceaaemccp4bw7hs7qtt2g6ateywrfpn3q"


@pytest.mark.parametrize("tenant", ["", " acme", "acme\n"])
def test_a_tenant_that_is_empty_or_ends_in_blanks_has_no_label(tenant: str) -> None:
    with pytest.raises(ValueError, match="no blanks"):
        tenant_label(tenant)


@pytest.mark.parametrize(
    ("accepts", "limit"),
    [
        (is_namespace, NAMESPACE_LIMIT),
        (is_object_name, OBJECT_NAME_LIMIT),
        (is_label_value, LABEL_VALUE_LIMIT),
    ],
)
def test_a_name_may_be_as_long_as_its_limit_and_no_longer(accepts: Callable[[str], bool], limit: int) -> None:
    assert accepts("a" * limit)
    assert not accepts("a" * (limit + 1))


@pytest.mark.parametrize(
    ("accepts", "good", "bad"),
    [
        (is_namespace, ["a", "tenant-1"], ["", "A", "-a", "a-", "a.b", "a_b", "a\n"]),
        (is_object_name, ["aws-1", "a.b"], ["", "a..b", ".a", "a.", "A", "a_b"]),
        (is_label_value, ["true", "A.b_c-1"], ["", "-a", "a-", "a b", "a,b=c", "ä", "a\n"]),
        (is_label_key, ["eu-access", "example.org/eu"], ["", "/eu", "example.org/", "A/b", "a/b/c"]),
        (is_data_key, ["client.id", "_x", ".a", "a.."], ["", "a/b", "a b", ".", "..", "..x"]),
    ],
)
def test_names_follow_the_charset_of_kubernetes(
    accepts: Callable[[str], bool], good: list[str], bad: list[str]
) -> None:
    assert [text for text in good if not accepts(text)] == []
    assert [text for text in bad if accepts(text)] == []


Five = tuple[str, str, str, str, str]
parts = st.text(string.ascii_letters + string.digits + "-_.", min_size=1)


@given(st.tuples(parts, parts, parts, parts, parts), st.tuples(parts, parts, parts, parts, parts))
def test_two_consumers_never_share_a_holder_id(one: Five, other: Five) -> None:
    assert (stack_holder(*one) == stack_holder(*other)) == (one == other)


def test_a_holder_id_names_the_stack_the_tenant_and_the_slot() -> None:
    assert stack_holder("organization", "credfleet", "dev", "acme", "aws") == (
        "pulumi/organization/credfleet/dev/acme/aws"
    )


def test_a_configuration_path_is_what_pulumi_config_takes() -> None:
    assert config_path("accountPool", "rules", 2) == "credfleet:accountPool.rules[2]"
    assert config_path("tenants", "a.b", "namespace") == 'credfleet:tenants["a.b"].namespace'
