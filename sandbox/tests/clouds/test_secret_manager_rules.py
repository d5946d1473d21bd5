"""What Secret Manager refuses, and how: rules that hold for the genuine one as well."""

import base64
import json
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.services.cloud.secret_manager.app import make_app
from pulumi_sandbox.services.cloud.secret_manager.secrets import project_number

from sandbox.tests.support.clouds import OWNER, Answer, Served, secret_manager

SECRETS = "projects/acme-prod-1/secrets"
ORDERS = f"{SECRETS}/orders"
AUTOMATIC = {"replication": {"automatic": {}}}
SENTINEL = b"sentinel of a payload"


@dataclass(frozen=True)
class Rest:
    """Requests below `/v1/`, as anybody's client makes them."""

    url: str
    token: str = "an-owner"

    def call(self, method: str, path: str, body: object = None, **query: str) -> Answer:
        answer = requests.request(
            method,
            f"{self.url}/v1/{path}",
            json=body,
            params=query,
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=10,
        )
        return Answer(answer.status_code, answer.json())

    def create(self, **fields: object) -> Answer:
        return self.call("POST", SECRETS, {**AUTOMATIC, **fields}, secretId="orders")

    def add(self, data: bytes, **fields: object) -> Answer:
        payload = {"data": base64.b64encode(data).decode(), **fields}
        return self.call("POST", f"{ORDERS}:addVersion", {"payload": payload})


@pytest.fixture
def service(tmp_path: Path) -> Generator[Served]:
    with secret_manager(tmp_path / "kept") as running:
        yield running


@pytest.fixture
def rest(service: Served) -> Rest:
    return Rest(service.url)


def test_names_in_answers_have_the_projects_number_which_is_good_for_requests_too(rest: Rest) -> None:
    number = project_number("acme-prod-1")
    assert rest.create().body["name"] == f"projects/{number}/secrets/orders"
    assert rest.call("GET", f"projects/{number}/secrets/orders").status == 200
    assert rest.call("GET", "projects/123456789012/secrets/orders").refusal == (403, "PERMISSION_DENIED")


@pytest.mark.parametrize("secret_id", ["", "with space", "dot.ted", "x" * 256])
def test_an_id_google_does_not_allow_is_refused(rest: Rest, secret_id: str) -> None:
    answer = rest.call("POST", SECRETS, AUTOMATIC, secretId=secret_id)
    assert answer.refusal == (400, "INVALID_ARGUMENT")


@pytest.mark.parametrize("replication", [{}, {"userManaged": {}}], ids=["none", "no replica"])
def test_replication_is_automatic_or_names_places(rest: Rest, replication: object) -> None:
    assert rest.create(replication=replication).refusal == (400, "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    ("labels", "status"),
    [
        ({"k" * 63: "v" * 63}, 200),
        ({"a": ""}, 200),
        ({f"k{number}": "" for number in range(64)}, 200),
        ({f"k{number}": "" for number in range(65)}, 400),
        ({"k" * 64: ""}, 400),
        ({"a": "v" * 64}, 400),
        ({"Upper": "v"}, 400),
        ({"a": "Upper"}, 400),
        ({"1st": "v"}, 400),
        ({"": "v"}, 400),
        ({"a": "do.t"}, 400),
    ],
)
def test_labels_are_held_to_googles_limits(rest: Rest, labels: dict[str, str], status: int) -> None:
    assert rest.create(labels=labels).status == status


def test_a_field_the_stand_in_would_forget_is_refused_and_not_forgotten(rest: Rest) -> None:
    assert rest.create(ttl="3600s").refusal == (501, "UNIMPLEMENTED")
    key = {"automatic": {"customerManagedEncryption": {"kmsKeyName": "k"}}}
    assert rest.create(replication=key).refusal == (501, "UNIMPLEMENTED")
    rest.create()
    assert rest.add(b"1", dataCrc32c="1").refusal == (501, "UNIMPLEMENTED")


@pytest.mark.parametrize("mask", ["", "replication", "labels,name"])
def test_a_mask_names_labels_alone(rest: Rest, mask: str) -> None:
    rest.create(labels={"a": "1"})
    refused = rest.call("PATCH", ORDERS, {"labels": {"a": "2"}}, updateMask=mask).refusal
    assert refused == (400, "INVALID_ARGUMENT")
    assert rest.call("GET", ORDERS).body["labels"] == {"a": "1"}
    assert "labels" not in rest.call("PATCH", ORDERS, {}, updateMask="labels").body


def test_a_stale_etag_changes_and_deletes_nothing(rest: Rest) -> None:
    old = rest.create().body["etag"]
    rest.call("PATCH", ORDERS, {"labels": {"a": "1"}, "etag": old}, updateMask="labels")
    stale = rest.call("PATCH", ORDERS, {"labels": {"a": "2"}, "etag": old}, updateMask="labels")
    assert stale.refusal == (400, "FAILED_PRECONDITION")
    assert rest.call("DELETE", ORDERS, etag=old).refusal == (400, "FAILED_PRECONDITION")
    assert rest.call("GET", ORDERS).body["labels"] == {"a": "1"}
    version = rest.add(b"1").body["etag"]
    rest.call("POST", f"{ORDERS}/versions/1:disable", {"etag": version})
    stale = rest.call("POST", f"{ORDERS}/versions/1:destroy", {"etag": version})
    assert stale.refusal == (400, "FAILED_PRECONDITION")


def test_latest_is_the_version_that_was_added_last_whatever_its_state(rest: Rest) -> None:
    rest.create()
    assert rest.call("GET", f"{ORDERS}/versions/latest").refusal == (404, "NOT_FOUND")
    rest.add(b"1")
    rest.add(b"2")
    rest.call("POST", f"{ORDERS}/versions/2:disable")
    assert rest.call("GET", f"{ORDERS}/versions/latest").body["state"] == "DISABLED"
    assert rest.call("GET", f"{ORDERS}/versions/latest:access").refusal == (400, "FAILED_PRECONDITION")
    assert rest.call("GET", f"{ORDERS}/versions/1:access").status == 200


def test_a_payload_has_at_least_one_byte_and_at_most_64_kib(rest: Rest) -> None:
    rest.create()
    assert rest.add(b"").refusal == (400, "INVALID_ARGUMENT")
    assert rest.add(b"x" * (64 * 1024 + 1)).refusal == (400, "INVALID_ARGUMENT")
    assert rest.add(b"x" * 64 * 1024).status == 200


@pytest.mark.parametrize(
    "body",
    [
        b'{"payload": {"data": "%s", "colour": 1}}',
        b'{"payload": {"data": {"%s": 1}}}',
        b'{"payload": {"data": "%s1"}}',
        b'{"payload": "%s"',
    ],
)
def test_a_refusal_never_quotes_a_payload(rest: Rest, body: bytes) -> None:
    rest.create()
    secret = base64.b64encode(SENTINEL)
    sent = requests.post(f"{rest.url}/v1/{ORDERS}:addVersion", data=body % secret, headers=OWNER, timeout=10)
    assert sent.status_code == 400
    assert secret.decode() not in sent.text
    assert SENTINEL.decode() not in sent.text


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic x", "x"])
def test_who_does_not_say_who_asks_is_refused(rest: Rest, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    for path in (SECRETS, f"{ORDERS}/versions/1:access"):
        answer = requests.get(f"{rest.url}/v1/{path}", headers=headers, timeout=10)
        assert (answer.status_code, answer.json()["error"]["status"]) == (401, "UNAUTHENTICATED")


@pytest.mark.parametrize("data", ["+/8=", "-_8=", "-_8"])
def test_a_payload_is_read_in_either_alphabet(rest: Rest, data: str) -> None:
    rest.create()
    assert rest.call("POST", f"{ORDERS}:addVersion", {"payload": {"data": data}}).status == 200
    assert rest.call("GET", f"{ORDERS}/versions/1:access").body["payload"]["data"] == "+/8="


def test_a_project_of_a_domain_is_one(rest: Rest) -> None:
    path = "projects/example.com:acme-prod/secrets"
    assert rest.call("POST", path, AUTOMATIC, secretId="orders").status == 200
    assert rest.call("GET", f"{path}/orders").status == 200


def test_a_regional_secret_is_another_than_the_global_one_of_its_name(rest: Rest, service: Served) -> None:
    place = "projects/acme-prod-1/locations/europe-west1/secrets"
    rest.create()
    made = rest.call("POST", place, {"labels": {"a": "1"}}, secretId="orders")
    assert made.body["name"].endswith("/locations/europe-west1/secrets/orders")
    assert rest.call("POST", place, AUTOMATIC, secretId="other").refusal == (400, "INVALID_ARGUMENT")
    assert rest.call("GET", f"{ORDERS}/versions").body.get("versions", []) == []
    assert len(rest.call("GET", place).body["secrets"]) == len(rest.call("GET", SECRETS).body["secrets"]) == 1
    elsewhere = place.replace("europe-west1", "europe-west4")
    assert rest.call("GET", f"{elsewhere}/orders").status == 404
    assert rest.call("GET", place.replace("europe-west1", "moon")).refusal == (400, "INVALID_ARGUMENT")


def test_a_path_that_google_does_not_serve_is_not_found(rest: Rest) -> None:
    assert rest.call("PUT", ORDERS, {}).refusal == (404, "NOT_FOUND")
    assert rest.call("GET", "projects/acme-prod-1/topics").refusal == (404, "NOT_FOUND")


def test_what_was_answered_is_there_after_a_restart_payload_policy_and_states(tmp_path: Path) -> None:
    policy = {"bindings": [{"role": "roles/secretmanager.viewer", "members": ["allUsers"]}]}
    with secret_manager(tmp_path) as first:
        rest = Rest(first.url)
        rest.create(labels={"a": "1"})
        rest.add(b"1")
        rest.add(b"2")
        rest.call("POST", f"{ORDERS}/versions/1:destroy")
        rest.call("POST", f"{ORDERS}:setIamPolicy", {"policy": policy})
        regional = "projects/acme-prod-1/locations/europe-west1/secrets"
        rest.call("POST", regional, {}, secretId="orders")
        versions = (f"{ORDERS}/versions", f"{ORDERS}/versions/2:access")
        paths = (ORDERS, *versions, f"{ORDERS}:getIamPolicy", f"{regional}/orders")
        before = [rest.call("GET", path).body for path in paths]
    with secret_manager(tmp_path) as second:
        assert [Rest(second.url).call("GET", path).body for path in paths] == before


def test_files_with_payloads_are_for_their_owner_alone_and_a_destroyed_one_is_gone(
    rest: Rest, tmp_path: Path
) -> None:
    rest.create()
    rest.add(SENTINEL)
    encoded = base64.b64encode(SENTINEL).decode()
    file = tmp_path / "kept" / "acme-prod-1" / "orders" / "secret.json"
    assert encoded in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    rest.call("POST", f"{ORDERS}/versions/1:destroy")
    assert encoded not in file.read_text()


def test_a_file_that_holds_no_secret_is_named(tmp_path: Path) -> None:
    file = tmp_path / "acme-prod-1" / "orders" / "secret.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"secret": {}}))
    with pytest.raises(SandboxError) as told:
        make_app(tmp_path)
    assert (told.value.code, told.value.place) == ("state-unreadable", str(file))


def test_a_filter_passes_what_it_says_and_what_is_not_understood_is_refused(rest: Rest) -> None:
    rest.create(labels={"team": "red", "cluster-id": "cls-1"})
    for asked, passes in {
        "": True,
        "labels.team=red labels.cluster-id=cls-1": True,
        "labels.team=red labels.cluster-id=cls-2": False,
        "labels.team=re": False,
        "labels.absent=red": False,
        "name:order": True,
        "name:orders-2": False,
    }.items():
        assert len(rest.call("GET", SECRETS, filter=asked).body.get("secrets", [])) == passes, asked
    for asked in ("(labels.a=b)", "labels.a", "labels.a=b OR labels.a=c", "-labels.a=b", "colour=red"):
        assert rest.call("GET", SECRETS, filter=asked).refusal == (400, "INVALID_ARGUMENT"), asked
    rest.add(b"1")
    assert rest.call("GET", f"{ORDERS}/versions", filter="state:ENABLED").refusal == (501, "UNIMPLEMENTED")
