"""The records of a deployment: resources, operations under way, and the snapshot that holds them.

Field names are those of the deployment format, version 3, in snake case.
See sandbox/docs/engine-facts.md, the format of the state.
"""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import Json, Properties, Secret, Value, conceal_keys

OperationType: TypeAlias = Literal["creating", "updating", "deleting", "reading", "importing"]


@dataclass(frozen=True, slots=True)
class CustomTimeouts:
    """How long a provider may take, in seconds; 0 leaves it to the provider."""

    create: float = 0
    update: float = 0
    delete: float = 0
    read: float = 0


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource as the state knows it.

    `provider` is `urn::id`; `delete` marks the old half of a replacement about to be deleted; `external` one
    that is only read; `created` and `modified` are RFC 3339 times; `source_position` is where in the program
    it is declared; `other` carries what only the CLI writes.
    """

    urn: str
    type: str
    custom: bool
    delete: bool = False
    id: str = ""
    inputs: Properties = field(default_factory=dict[str, Value])
    outputs: Properties = field(default_factory=dict[str, Value])
    parent: str = ""
    protect: bool = False
    taint: bool = False
    external: bool = False
    dependencies: tuple[str, ...] = ()
    init_errors: tuple[str, ...] = ()
    provider: str = ""
    property_dependencies: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    pending_replacement: bool = False
    additional_secret_outputs: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    custom_timeouts: CustomTimeouts = CustomTimeouts()
    import_id: str = ""
    retain_on_delete: bool = False
    deleted_with: str = ""
    replace_with: tuple[str, ...] = ()
    created: str = ""
    modified: str = ""
    source_position: str = ""
    ignore_changes: tuple[str, ...] = ()
    replace_on_changes: tuple[str, ...] = ()
    replacement_trigger: Value = None
    hide_diff: tuple[str, ...] = ()
    resource_hooks: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    other: dict[str, Json] = field(default_factory=dict[str, Json])

    @property
    def is_provider(self) -> bool:
        """Whether this is itself a provider."""
        return self.type.startswith(urns.PROVIDER_TYPE_PREFIX)

    @property
    def provider_urn(self) -> str:
        """The URN of the provider that manages this resource, empty when there is none."""
        return urns.of_provider(self.provider)

    @property
    def references(self) -> tuple[str, ...]:
        """All that must stand earlier in the state, but for the provider: parent, dependencies, and so on."""
        by_property = (urn for urns in self.property_dependencies.values() for urn in urns)
        single = (urn for urn in (self.parent, self.deleted_with) if urn)
        return tuple(dict.fromkeys((*single, *self.dependencies, *by_property, *self.replace_with)))


@dataclass(frozen=True, slots=True)
class PendingOperation:
    """A call that was begun and whose end was never recorded."""

    resource: Resource
    type: OperationType


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All a stack has: resources, each after what it refers to, and the operations under way."""

    resources: tuple[Resource, ...] = ()
    pending: tuple[PendingOperation, ...] = ()


def spelling(field: str) -> str:
    """Return how the deployment format spells a field of a record."""
    head, *tail = field.split("_")
    return "importID" if field == "import_id" else head + "".join(map(str.capitalize, tail))


def with_secret_outputs(resource: Resource) -> Resource:
    """Conceal outputs named additionalSecretOutputs, or like a secret input: the rule of every step."""
    like_inputs = (key for key, value in resource.inputs.items() if isinstance(value, Secret))
    keys = {*resource.additional_secret_outputs, *like_inputs} - {"id"}
    leaking = [
        key for key in keys if key in resource.outputs and not isinstance(resource.outputs[key], Secret)
    ]
    return replace(resource, outputs=conceal_keys(resource.outputs, leaking)) if leaking else resource


def now() -> str:
    """Return the present as the state writes times."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")
