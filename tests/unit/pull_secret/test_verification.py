"""Whether the version that was added is the one that was meant."""

from dataclasses import replace

from components.pull_secret.verification import (
    Expected,
    differences,
    digest_of,
    is_delivered,
    lost_version,
    verify,
)
from components.secret_manager import VersionState
from tests.support.cases import cases, tabled
from tests.support.memory_secret_manager import (
    DESTROYED,
    DISABLED,
    ENABLED,
    SECRET,
    MemorySecretManager,
)

OURS, THEIRS = b"sentinel-ours", b"sentinel-theirs"


def expected(version: int, content: bytes = OURS) -> Expected:
    return Expected("p", "s", version, "east", digest_of("east", content))


def manager(*laid_out: tuple[bytes, VersionState]) -> MemorySecretManager:
    return MemorySecretManager([*laid_out])


@cases(
    "newer, told",
    {
        "other-content": ((THEIRS, ENABLED), "; it holds another value"),
        "same-content": ((OURS, ENABLED), "; it holds the same"),
        "disabled": ((THEIRS, DISABLED), " and is disabled, so a reader of the latest"),
    },
)
def test_a_newer_version_of_somebody_else_is_named_and_left_alone(
    newer: tuple[bytes, VersionState], told: str
) -> None:
    there = manager((OURS, ENABLED), newer)
    standing, disabled = verify(there, expected(1), before=0)
    who = "version 2, which another writer added at 2026-01-02T00:00:00Z, is the latest"
    assert (standing.latest, disabled, there.writes) == (2, [], [])
    assert standing.overtaken.startswith(f"{who}{told}")


def test_nobody_has_overtaken_a_version_that_is_not_the_latest_yet() -> None:
    """Google keeps its word about a number at once, about an alias after minutes."""
    there = manager((THEIRS, ENABLED), (OURS, ENABLED))
    there.latest = 1
    standing, _ = verify(there, expected(2), before=1)
    assert (standing.latest, standing.overtaken) == (1, "")


def test_other_content_between_the_two_is_somebody_elses_and_stays() -> None:
    there = manager((OURS, ENABLED), (THEIRS, ENABLED), (OURS, ENABLED))
    assert verify(there, expected(3), before=1)[1] == []


def test_equal_pull_secrets_of_two_clusters_have_different_digests() -> None:
    assert digest_of("east", OURS) != digest_of("west", OURS)
    assert not replace(expected(1), owner="west").is_met_by(OURS)


@cases(
    "there, overtaken, told",
    {
        "as-it-was": ([(OURS, ENABLED)], "", []),
        "gone": ([], "", ["it is gone"]),
        "disabled": ([(OURS, DISABLED)], "", ["it is disabled"]),
        "destroyed": ([(OURS, DESTROYED)], "", ["it is destroyed"]),
        "overtaken": ([(OURS, ENABLED), (THEIRS, ENABLED)], "", ["version 2, which another writer added"]),
        "overtaken-no-more": ([(OURS, ENABLED)], "version 2", ["it is the latest again"]),
    },
)
def test_what_became_of_a_version_since_it_was_verified_is_told(
    there: list[tuple[bytes, VersionState]], overtaken: str, told: list[str]
) -> None:
    found = [*differences(manager(*there), expected(1), overtaken)]
    assert len(found) == len(told)
    assert all(one.startswith(start) for one, start in zip(found, told, strict=True))


@tabled("data, delivered")
def test_a_secret_is_delivered_when_it_holds_what_was_meant(data: dict[str, str], delivered: bool) -> None:
    assert is_delivered(data, expected(1)) is delivered


@cases(
    "laid_out, delivered, lost",
    {
        "in-use": ([(OURS, ENABLED)], 1, None),
        "destroyed": ([(OURS, DESTROYED)], 1, 1),
        "disabled-is-enabled-instead": ([(OURS, DISABLED)], 1, None),
        "destroyed-below-somebody-elses": ([(OURS, DESTROYED), (THEIRS, ENABLED)], 1, 1),
        "replaced-by-policy": ([(THEIRS, DESTROYED), (OURS, ENABLED)], 2, None),
        "of-an-entry-made-again": ([(THEIRS, ENABLED)], 3, 3),
        "nothing-delivered": ([(OURS, ENABLED), (OURS, DESTROYED)], None, 2),
        "no-version-yet": ([], None, None),
    },
)
def test_the_version_a_cluster_was_given_is_lost_once_nobody_can_ever_read_it(
    laid_out: list[tuple[bytes, VersionState]], delivered: int | None, lost: int | None
) -> None:
    named = "somebody's note" if delivered is None else f"{SECRET}/versions/{delivered}"
    found = lost_version(manager(*laid_out), SECRET, named)
    assert found == ("" if lost is None else f"{SECRET}/versions/{lost}")


def test_a_first_verification_leaves_what_was_in_use_before_other_content() -> None:
    there = manager((OURS, ENABLED), (THEIRS, ENABLED), (OURS, ENABLED), (OURS, ENABLED))
    assert verify(there, expected(4), before=0)[1] == [3]
    assert there.states() == [ENABLED, ENABLED, DISABLED, ENABLED]
