"""What becomes of versions that are not needed any more."""

from components.pull_secret.retention import Retention, settle_all, settle_replaced
from components.secret_manager import VersionState
from tests.support.cases import cases
from tests.support.memory_secret_manager import DESTROYED, DISABLED, ENABLED, SECRET, MemorySecretManager

KEEP, DISABLE, DESTROY = Retention.KEEP, Retention.DISABLE, Retention.DESTROY


@cases(
    "retention, states, told",
    {
        "keep": (KEEP, [ENABLED, ENABLED, ENABLED], "version 2 is kept"),
        "disable": (DISABLE, [ENABLED, DISABLED, ENABLED], "version 2 is disabled"),
        "destroy": (DESTROY, [ENABLED, DESTROYED, ENABLED], "version 2 is destroyed"),
    },
)
def test_only_the_version_that_was_replaced_is_touched(
    retention: Retention, states: list[VersionState], told: str
) -> None:
    there = MemorySecretManager([(b"1", ENABLED), (b"2", ENABLED), (b"3", ENABLED)])
    assert settle_replaced(there, SECRET, retention, since=2, former=2, now=3) == told
    assert there.states() == states


@cases(
    "retention, states, told",
    {
        "keep": (KEEP, [ENABLED] * 4, "version 1 is kept"),
        "disable": (
            DISABLE,
            [DISABLED, DISABLED, DISABLED, ENABLED],
            "version 1 is disabled; what else was there before is disabled (2, 3)",
        ),
        "destroy": (
            DESTROY,
            [DESTROYED, DISABLED, DISABLED, ENABLED],
            "version 1 is destroyed; what else was there before is disabled (2, 3)",
        ),
    },
)
def test_versions_of_updates_that_failed_are_no_longer_read_and_never_destroyed(
    retention: Retention, states: list[VersionState], told: str
) -> None:
    there = MemorySecretManager([(b"1", ENABLED), (b"2", ENABLED), (b"3", ENABLED), (b"4", ENABLED)])
    assert settle_replaced(there, SECRET, retention, since=1, former=1, now=4) == told
    assert there.states() == states
    writes = [*there.writes]
    settle_replaced(there, SECRET, retention, since=1, former=1, now=4)
    assert there.writes == writes


@cases(
    "former, retention, states, told",
    {
        "the-policy-alone": (4, DISABLE, [DISABLED, DESTROYED, DISABLED, ENABLED], "(1, 3)"),
        "to-destroy": (4, DESTROY, [DISABLED, DESTROYED, DISABLED, ENABLED], "(1, 3)"),
        "with-a-rotation": (3, DISABLE, [DISABLED, DESTROYED, DISABLED, ENABLED], "version 3 is disabled"),
        "to-destroy-with-a-rotation": (3, DESTROY, [DISABLED, DESTROYED, DESTROYED, ENABLED], "(1)"),
    },
)
def test_what_was_kept_until_now_is_no_longer_read(
    former: int, retention: Retention, states: list[VersionState], told: str
) -> None:
    there = MemorySecretManager([(b"1", ENABLED), (b"2", DESTROYED), (b"3", ENABLED), (b"4", ENABLED)])
    assert told in settle_replaced(there, SECRET, retention, since=1, former=former, now=4)
    assert there.states() == states


@cases(
    "retention, states",
    {
        "keep": (KEEP, [ENABLED, DESTROYED, ENABLED]),
        "disable": (DISABLE, [DISABLED, DESTROYED, DISABLED]),
        "destroy-is-the-providers": (DESTROY, [ENABLED, DESTROYED, ENABLED]),
    },
)
def test_all_versions_are_settled_when_a_cluster_leaves(
    retention: Retention, states: list[VersionState]
) -> None:
    there = MemorySecretManager([(b"1", ENABLED), (b"2", DESTROYED), (b"3", ENABLED)])
    told = settle_all(there, SECRET, retention)
    assert there.states() == states
    assert ("(3, 1)" in told) is (retention is DISABLE)
