"""Which IAM policies are accepted, how bindings are merged, and what an etag protects."""

import pytest
from google.iam.v1.policy_pb2 import Binding, Policy
from pulumi_sandbox.services.cloud.secret_manager.iam import EMPTY_ETAG, as_version, replaced
from pulumi_sandbox.services.cloud.secret_manager.refusals import GcpRefusal

ACCESSOR = "roles/secretmanager.secretAccessor"
ADA = "user:ada@example.com"
PRESENT = Policy(etag=EMPTY_ETAG)


def binding(*members: str, role: str = ACCESSOR, expression: str = "", title: str = "t") -> Binding:
    made = Binding(role=role, members=members)
    if expression:
        made.condition.title, made.condition.expression = title, expression
    return made


def refusal(policy: Policy) -> str:
    with pytest.raises(GcpRefusal) as told:
        replaced(PRESENT, policy)
    return told.value.status


@pytest.mark.parametrize(
    "member",
    [
        "allUsers",
        ADA,
        "serviceAccount:reader@acme-prod-1.iam.gserviceaccount.com",
        "serviceAccount:acme-prod-1.svc.id.goog[hyperfleet-system/pullsecret-adapter-job]",
        "principal://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/"
        "acme-prod-1.svc.id.goog/subject/ns/a/sa/b",
        "deleted:user:ada@example.com?uid=1",
    ],
)
def test_the_ways_to_name_somebody_are_accepted(member: str) -> None:
    assert replaced(PRESENT, Policy(bindings=[binding(member)])).bindings[0].members == [member]


@pytest.mark.parametrize(
    "member", ["ada@example.com", "users:ada@example.com", "principal://x/y", "user:ada"]
)
def test_nobody_is_named_in_another_way(member: str) -> None:
    assert refusal(Policy(bindings=[binding(member)])) == "INVALID_ARGUMENT"


def test_a_role_is_one_of_googles_or_of_a_project() -> None:
    for role in ("secretAccessor", "roles/secretmanager.reader", "roles/owner"):
        assert refusal(Policy(bindings=[binding(ADA, role=role)])) == "INVALID_ARGUMENT"
    own = binding(ADA, role="projects/acme-prod-1/roles/reader")
    assert replaced(PRESENT, Policy(bindings=[own])).bindings == [own]


def test_a_policy_has_1500_members_at_most() -> None:
    members = [f"user:u{number}@example.com" for number in range(1500)]
    assert len(replaced(PRESENT, Policy(bindings=[binding(*members)])).bindings[0].members) == 1500
    assert refusal(Policy(bindings=[binding(*members), binding(ADA)])) == "INVALID_ARGUMENT"


def test_a_condition_needs_policy_version_3_and_a_title() -> None:
    assert refusal(Policy(version=1, bindings=[binding(ADA, expression="true")])) == "INVALID_ARGUMENT"
    untitled = binding(ADA, expression="true", title="")
    assert refusal(Policy(version=3, bindings=[untitled])) == "INVALID_ARGUMENT"


def test_two_writers_that_read_the_same_policy_do_not_undo_each_other() -> None:
    first = replaced(PRESENT, Policy(etag=PRESENT.etag, bindings=[binding(ADA)]))
    with pytest.raises(GcpRefusal) as told:
        replaced(first, Policy(etag=PRESENT.etag, bindings=[]))
    assert told.value.status == "ABORTED"


def test_a_policy_without_an_etag_is_set_whatever_was_there() -> None:
    first = replaced(PRESENT, Policy(bindings=[binding(ADA)]))
    assert replaced(first, Policy()).bindings == []


def test_bindings_of_one_role_and_condition_become_one_and_empty_ones_go() -> None:
    conditional = binding(ADA, expression="true")
    kept = replaced(
        PRESENT,
        Policy(
            version=3,
            bindings=[
                binding("user:z@example.com"),
                conditional,
                binding(ADA, "user:z@example.com"),
                binding(role="roles/secretmanager.viewer"),
            ],
        ),
    )
    assert kept.bindings == [binding(ADA, "user:z@example.com"), conditional]


def test_an_old_reader_sees_a_condition_as_a_role_it_cannot_mistake() -> None:
    policy = replaced(PRESENT, Policy(version=3, bindings=[binding(ADA, expression="true"), binding(ADA)]))
    old, new = as_version(policy, 1), as_version(policy, 3)
    assert (old.version, new.version) == (1, 3)
    roles = sorted(each.role for each in old.bindings)
    assert roles[0] == ACCESSOR
    assert roles[1].startswith(f"{ACCESSOR}_withcond_")
    assert not any(each.HasField("condition") for each in old.bindings)
    assert list(new.bindings) == list(policy.bindings)
