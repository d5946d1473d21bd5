"""What a program asks for: one registration, read from the wire, with all that it inherits filled in."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Final

from pulumi_sandbox.engine.model.resource import CustomTimeouts, Resource
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import urns, wire
from pulumi_sandbox.protocol.stubs import alias_pb2, resource_pb2
from pulumi_sandbox.protocol.values import Properties, Value

INTERNAL: Final = "__internal"
"""The key among the inputs of a provider resource that only the engine sees."""


@dataclass(frozen=True, slots=True)
class Goal:
    """The state a program wants a resource to be in.

    `import_id` is that of an object that exists already, and is to be this resource from now on.
    `provider` is a reference `urn::id`, empty for components, provider resources and where the default
    provider is to serve; `providers` maps packages to references, for the children of a component.
    `protect` and `retain_on_delete` are None when not said.
    """

    type: str
    name: str
    custom: bool
    inputs: Properties
    parent: str = ""
    provider: str = ""
    providers: dict[str, str] = field(default_factory=dict[str, str])
    version: str = ""
    dependencies: tuple[str, ...] = ()
    property_dependencies: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    protect: bool | None = None
    retain_on_delete: bool | None = None
    delete_before_replace: bool | None = None
    ignore_changes: tuple[str, ...] = ()
    replace_on_changes: tuple[str, ...] = ()
    additional_secret_outputs: tuple[str, ...] = ()
    aliases: tuple[alias_pb2.Alias, ...] = ()
    import_id: str = ""
    custom_timeouts: CustomTimeouts = field(default_factory=CustomTimeouts)
    deleted_with: str = ""
    replace_with: tuple[str, ...] = ()
    hooks: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    source_position: str = ""
    replacement_trigger: Value = None
    hide_diffs: tuple[str, ...] = ()

    @property
    def package(self) -> str:
        """The package whose provider manages resources of this type."""
        return package_of(self.type)

    @property
    def is_provider(self) -> bool:
        """Whether the resource is itself a provider."""
        return self.type.startswith(urns.PROVIDER_TYPE_PREFIX)

    def served_by(self, provider: str) -> Goal:
        """Return this goal with another provider reference."""
        return replace(self, provider=provider)

    def record(self, urn: str, alias: str, old: Resource | None) -> Resource:
        """Return the state record this goal leads to, as yet without id and outputs."""
        return Resource(
            urn=urn,
            type=self.type,
            custom=self.custom,
            inputs=self.inputs,
            parent=self.parent,
            protect=bool(self.protect),
            dependencies=self.dependencies,
            provider=self.provider,
            property_dependencies=self.property_dependencies,
            additional_secret_outputs=self.additional_secret_outputs,
            aliases=(alias,) if alias else (),
            import_id=self.import_id if self.custom else "",
            custom_timeouts=self.custom_timeouts,
            retain_on_delete=bool(self.retain_on_delete),
            deleted_with=self.deleted_with,
            replace_with=self.replace_with,
            created=old.created if old else "",
            modified=old.modified if old else "",
            source_position=self.source_position,
            ignore_changes=self.ignore_changes,
            replace_on_changes=self.replace_on_changes,
            replacement_trigger=self.replacement_trigger,
            hide_diff=self.hide_diffs,
            resource_hooks=self.hooks,
            other={key: value for key, value in old.other.items() if key != "stackTrace"} if old else {},
        )


def package_of(type_: str) -> str:
    """Return the package of a type token or function token: `kubernetes` of `kubernetes:core/v1:Secret`."""
    if type_.startswith(urns.PROVIDER_TYPE_PREFIX):
        return type_.removeprefix(urns.PROVIDER_TYPE_PREFIX)
    return type_.split(":", 1)[0]


def refuse_unsupported(
    request: resource_pb2.RegisterResourceRequest, options: resource_pb2.TransformResourceOptions
) -> None:
    """Refuse, by name, what a registration or one of its transforms asks for and this engine cannot do.

    Raises SandboxError `unsupported`.
    """
    place = f"{request.type} {request.name!r}"
    wanted = {
        "the option state_migrations": bool(request.state_migrations),
        "the option env_var_mappings": bool(request.envVarMappings),
        "the option plugin_download_url": bool(options.plugin_download_url),
        "error hooks": bool(options.hooks.on_error),
        "snippets": bool(request.snippetId),
    }
    for feature, asked in wanted.items():
        if asked:
            raise unsupported(feature, place)


def unsupported(
    feature: str, place: str, mend: str = "leave it out, or run the stack with the Pulumi CLI"
) -> SandboxError:
    """Return the error that leaves a feature to the Pulumi CLI."""
    return SandboxError(
        code="unsupported",
        place=place,
        cause=f"{feature}: not supported by the embedded engine",
        mend=mend,
    )


def options_of(request: resource_pb2.RegisterResourceRequest) -> resource_pb2.TransformResourceOptions:
    """Return a registration's options in the form transforms receive and return."""
    decided = request.deleteBeforeReplaceDefined or request.deleteBeforeReplace
    options = resource_pb2.TransformResourceOptions(
        depends_on=request.dependencies,
        protect=request.protect if request.HasField("protect") else None,
        ignore_changes=request.ignoreChanges,
        replace_on_changes=request.replaceOnChanges,
        version=request.version,
        aliases=[*(alias_pb2.Alias(urn=urn) for urn in request.aliasURNs), *request.aliases],
        provider=request.provider,
        custom_timeouts=request.customTimeouts if request.HasField("customTimeouts") else None,
        retain_on_delete=request.retainOnDelete if request.HasField("retainOnDelete") else None,
        deleted_with=request.deletedWith,
        delete_before_replace=request.deleteBeforeReplace if decided else None,
        additional_secret_outputs=request.additionalSecretOutputs,
        providers=request.providers,
        hooks=request.hooks if request.HasField("hooks") else None,
        replace_with=request.replace_with,
        plugin_download_url=request.pluginDownloadURL,
        hide_diff=request.hideDiffs,
        replacement_trigger=request.replacement_trigger if request.HasField("replacement_trigger") else None,
    )
    setattr(options, "import", request.importId)
    return options


def goal_of(
    request: resource_pb2.RegisterResourceRequest,
    inputs: Properties,
    options: resource_pb2.TransformResourceOptions,
) -> Goal:
    """Read a registration whose inputs and options may have been transformed.

    A property that a transform added depends on nothing it did not say; one that it removed takes its
    dependencies along. The version of an explicit provider is one of its inputs.
    """
    if request.type.startswith(urns.PROVIDER_TYPE_PREFIX) and options.version:
        inputs = {**inputs, "version": options.version, INTERNAL: {}}
    return Goal(
        type=request.type,
        name=request.name,
        custom=request.custom,
        inputs=inputs,
        parent=request.parent,
        provider=options.provider,
        providers=dict(options.providers),
        version=options.version,
        dependencies=tuple(sorted(options.depends_on)),
        property_dependencies={
            key: tuple(sorted(request.propertyDependencies[key].urns))
            for key in sorted(request.propertyDependencies)
            if key in inputs
        },
        protect=options.protect if options.HasField("protect") else None,
        retain_on_delete=options.retain_on_delete if options.HasField("retain_on_delete") else None,
        delete_before_replace=options.delete_before_replace
        if options.HasField("delete_before_replace")
        else None,
        ignore_changes=tuple(options.ignore_changes),
        replace_on_changes=tuple(options.replace_on_changes),
        additional_secret_outputs=tuple(options.additional_secret_outputs),
        aliases=tuple(options.aliases),
        import_id=getattr(options, "import"),
        custom_timeouts=CustomTimeouts(
            create=seconds(options.custom_timeouts.create),
            update=seconds(options.custom_timeouts.update),
            delete=seconds(options.custom_timeouts.delete),
        ),
        deleted_with=options.deleted_with,
        replace_with=tuple(options.replace_with),
        hooks=_hooks(options.hooks),
        replacement_trigger=wire.decode_value(options.replacement_trigger),
        hide_diffs=tuple(options.hide_diff),
    )


def inherit(goal: Goal, parent: Goal) -> Goal:
    """Fill in what a resource takes over from its parent."""
    return replace(
        goal,
        protect=parent.protect if goal.protect is None else goal.protect,
        retain_on_delete=parent.retain_on_delete if goal.retain_on_delete is None else goal.retain_on_delete,
        deleted_with=goal.deleted_with or parent.deleted_with,
        providers=goal.providers if goal.custom else {**parent.providers, **goal.providers},
    )


def provider_for(goal: Goal, parent: Goal | None) -> str:
    """Return the reference of the provider that a custom resource is to have; empty: the default one.

    The own `provider` option comes first, then the own `providers`, the parent's provider of the same
    package, and what the parent component was given for its children.
    """
    if goal.provider:
        return goal.provider
    if goal.package in goal.providers:
        return goal.providers[goal.package]
    if parent is None:
        return ""
    if parent.provider and package_of(urns.parse(urns.of_provider(parent.provider)).type) == goal.package:
        return parent.provider
    return parent.providers.get(goal.package, "")


_DURATION: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(duration: str) -> float:
    """Read a timeout as programs write it (`5m`, `1h30m`); an empty one is 0.

    Raises SandboxError `timeout-invalid`.
    """
    parts = _DURATION.findall(duration)
    if "".join(number + unit for number, unit in parts) != duration:
        raise SandboxError(
            code="timeout-invalid",
            place=f"custom timeout {duration!r}",
            cause="it is no duration",
            mend="write a number and a unit: 30s, 5m, 1h30m",
        )
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _hooks(binding: resource_pb2.RegisterResourceRequest.ResourceHooksBinding) -> dict[str, tuple[str, ...]]:
    named = {
        "BeforeCreate": binding.before_create,
        "AfterCreate": binding.after_create,
        "BeforeUpdate": binding.before_update,
        "AfterUpdate": binding.after_update,
        "BeforeDelete": binding.before_delete,
        "AfterDelete": binding.after_delete,
    }
    return {moment: tuple(hooks) for moment, hooks in named.items() if hooks}
