"""What the configuration of services may say, and what it may not."""

from typing import Any, Final

import pytest

from components.errors import Problem
from components.service_credentials.settings import Instance
from tests.support.cases import tabled
from tests.support.stacks import problems, settings, stack

CANARY = "canary-5c1d"
DATABASE = f'{{"type": "database", "port": 5432, "user": {{"password": "{CANARY}"}}}}'
DB: Final = {"credentialsFrom": "db"}
PLACE = "credfleet:services.instances.orders-db"


def services(instance: dict[str, Any], credential: str = DATABASE, **changes: Any) -> dict[str, str]:
    instance = {"namespace": "tenant-acme", **instance}
    return stack(credentials__db=credential, services={"instances": {"orders-db": instance}}, **changes)


def told(values: dict[str, str]) -> Problem:
    (problem,) = problems(values)
    assert CANARY not in repr(problem)
    return problem


def test_an_instance_has_credentials_and_bindings() -> None:
    values = services({**DB, "bindings": {"orders-api": {"displayName": "db"}}})

    found = settings(values).services

    assert found is not None
    assert found.instances == {
        "orders-db": Instance.model_validate(
            {
                "namespace": "tenant-acme",
                "credentialsFrom": "db",
                "bindings": {"orders-api": {"displayName": "db"}},
            }
        )
    }


@tabled("instance, place, fix")
def test_a_mistake_is_told_where_it_is_with_its_fix(instance: dict[str, Any], place: str, fix: str) -> None:
    problem = told(services(instance))

    assert (problem.place, fix in problem.fix) == (f"{PLACE}{place}", True)


def test_a_name_leaves_room_for_what_its_other_secrets_add() -> None:
    longest, binding = "b" * 249, "b" * 250
    assert problems(services({**DB, "bindings": {longest: {}}})) == ()

    problem = told(services({**DB, "bindings": {binding: {}}}))

    assert problem.place == f"{PLACE}.bindings.{binding}"
    assert f"{binding}-env has more than" in problem.problem


@tabled("credential, key")
def test_credentials_that_cannot_become_secrets_are_told_by_their_key(credential: str, key: str) -> None:
    problem = told(services(DB, credential))

    assert problem.place == f"{PLACE}.credentialsFrom (db: {key})"


def test_what_only_breaks_the_specification_is_refused_when_strict() -> None:
    credential = '{"type": "database", "DB_URL": "x"}'

    assert problems(services(DB, credential)) == ()
    assert "DB_URL" in told(services({**DB, "strict": True}, credential)).place


@pytest.mark.parametrize("binding", ["orders-db", "aws-account"])
def test_two_secrets_never_have_one_name(binding: str) -> None:
    values = services(
        {**DB, "bindings": {binding: {}}},
        tenants__acme__accounts__aws__deliverTo="aws-account",
    )

    assert told(values).place == f"{PLACE}.bindings.{binding}"


def test_a_legacy_instance_keeps_its_name_to_its_old_secret() -> None:
    assert told(services({"legacy": True, "bindings": {"orders-db-migrated": {}}})).place.endswith(
        "-migrated"
    )


TWO: Final = {
    "acme-db": {"namespace": "tenant-acme", "secretName": "db", **DB, "bindings": {"api": {}}},
    "globex-db": {"namespace": "tenant-globex", "secretName": "db", **DB, "bindings": {"api": {}}},
    "old": {"namespace": "tenant-acme", "legacy": True, "bindings": {"worker": {}}},
}
APPS: Final = "credfleet:services.apps"


def with_apps(apps: dict[str, Any], credential: str = DATABASE, **instances: Any) -> dict[str, str]:
    given = {"instances": {**TWO, **instances}, "apps": apps}
    namespaces = {"tenants__globex": {"namespace": "tenant-globex"}}
    return stack(credentials__db=credential, services=given, **namespaces)


def test_two_namespaces_have_a_service_a_binding_and_an_application_of_one_name_each() -> None:
    apps = {
        f"{tenant}-shop": {
            "namespace": f"tenant-{tenant}",
            "bindings": [f"{tenant}-db/api"],
            "secretName": "shop",
        }
        for tenant in ("acme", "globex")
    }
    assert problems(with_apps(apps)) == ()


@tabled("app, place, fix")
def test_a_mistake_in_an_application_is_told_where_it_is(app: dict[str, Any], place: str, fix: str) -> None:
    again = {"namespace": "tenant-acme", **DB, "bindings": {"own": {"displayName": "api"}}}
    found = problems(with_apps({"shop": {"namespace": "tenant-acme", **app}}, again=again))
    assert {problem.place for problem in found} == {f"{APPS}.shop{place}"}
    assert fix in found[0].fix


@pytest.mark.parametrize(("size", "file"), [(1_000, False), (70_000, True)])
def test_an_application_reads_a_file_as_soon_as_no_variable_holds_all_its_bindings(
    size: int, file: bool
) -> None:
    text = '{"v": "%s"}' % ("x" * size)
    more = {"namespace": "tenant-acme", **DB, "bindings": {"more": {}}}
    app = {"namespace": "tenant-acme", "bindings": ["acme-db/api", "further/more"]}
    found = settings(with_apps({"shop": app}, text, further=more))
    assert found.services is not None
    assert found.services.takes_file(found.services.apps["shop"], found.credentials) is file
    (alone,) = (found.services.apps["shop"].model_copy(update={"bindings": ("acme-db/api",)}),)
    assert not found.services.takes_file(alone, found.credentials)
    assert found.services.takes_file(alone.model_copy(update={"file": True}), found.credentials)


def test_bindings_that_no_secret_holds_together_are_refused() -> None:
    text = '{"v": "%s"}' % ("x" * 600_000)
    more = {"namespace": "tenant-acme", **DB, "bindings": {"more": {}}}
    app = {"namespace": "tenant-acme", "bindings": ["acme-db/api", "further/more"]}
    told = {each.place: each.problem for each in problems(with_apps({"shop": app}, text, further=more))}
    assert "a Secret takes no more than 1048576" in told[f"{APPS}.shop.bindings"]


@pytest.mark.parametrize("instance", [DB, {"legacy": True}, {**DB, "legacy": False}])
def test_only_what_was_migrated_has_a_legacy_secret_to_remove(instance: dict[str, Any]) -> None:
    assert "legacy: true and credentialsFrom" in told(services({**instance, "removeLegacy": True})).fix
    assert problems(services({**DB, "legacy": True, "removeLegacy": True})) == ()


@pytest.mark.parametrize("given", [{"legacy": True}, {"credentialsFrom": {"secret": "tenant-acme/db"}}])
def test_only_secrets_of_an_entry_are_handed_over(given: dict[str, Any]) -> None:
    assert "of an entry of credentials" in told(services({**given, "handOver": True})).problem
    assert problems(services({**DB, "handOver": True})) == ()


@tabled("source, fix")
def test_credentials_that_are_nowhere_are_told_where_they_are_named(source: dict[str, Any], fix: str) -> None:
    problem = told(services({"credentialsFrom": source, "bindings": {"app": {}}}))

    place = problem.place.removesuffix(".secret").removesuffix(".gcpSecret")
    assert (place, fix in problem.fix) == (f"{PLACE}.credentialsFrom", True)


@tabled("source")
def test_credentials_may_be_in_the_cluster(source: dict[str, Any]) -> None:
    assert problems(services({"credentialsFrom": source})) == ()
