"""URNs of resources: `urn:pulumi:STACK::PROJECT::PARENT$TYPE::NAME`."""

import re
from typing import Final, NamedTuple

ROOT_STACK_TYPE: Final = "pulumi:pulumi:Stack"
PROVIDER_TYPE_PREFIX: Final = "pulumi:providers:"


class Urn(NamedTuple):
    """The parts of a URN; `qualified_type` has the types of the parents and the resource, joined by `$`."""

    stack: str
    project: str
    qualified_type: str
    name: str

    @property
    def type(self) -> str:
        """The resource's own type token."""
        return self.qualified_type.rsplit("$", 1)[-1]

    def __str__(self) -> str:
        return f"urn:pulumi:{self.stack}::{self.project}::{self.qualified_type}::{self.name}"


def parse(urn: str) -> Urn:
    """Parse a URN; a resource's own name can contain `::`.

    Raises ValueError if it is not a URN.
    """
    prefix, _, rest = urn.partition("urn:pulumi:")
    parts = rest.split("::", 3)
    if prefix or len(parts) != 4:
        raise ValueError(f"{urn!r} names no resource")
    return Urn(*parts)


def is_default_provider(urn: str) -> bool:
    """Return whether this is a default provider of the engine (`default`, `default_4_34_2`)."""
    parts = parse(urn)
    return parts.type.startswith(PROVIDER_TYPE_PREFIX) and re.match(r"default(_|$)", parts.name) is not None


def of_provider(reference: str) -> str:
    """Return the URN in a provider reference, `urn::id`."""
    return reference.rpartition("::")[0]
