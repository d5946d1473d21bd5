"""What separates the old inputs of a resource from the new ones, as its provider says."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Changes: TypeAlias = Literal["none", "some", "unknown"]


@dataclass(frozen=True, slots=True)
class PropertyDiff:
    """What a provider says of one property: `add`, `delete` or `update`, each also with `-replace` behind it.

    `input_diff` tells that old inputs were compared, not the old state.
    """

    kind: str
    input_diff: bool = False


@dataclass(frozen=True, slots=True)
class Diff:
    """A provider's answer to what separates old and new; paths are as the provider wrote them."""

    changes: Changes
    replaces: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    detailed: dict[str, PropertyDiff] | None = None
    delete_before_replace: bool = False

    @property
    def demands_replacement(self) -> bool:
        """Whether the resource cannot be changed in place."""
        return bool(self.replaces) or any(
            diff.kind.endswith("-replace") for diff in (self.detailed or {}).values()
        )


NO_DIFFERENCE: Final = Diff("none")
