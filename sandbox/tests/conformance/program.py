"""A Pulumi program that is told as data: the same rows are run under the genuine engine and under this one.

A row's program is a list of what it does, each a dictionary whose first key is its kind and the name:
`{thing: a, in: {color: blue}, protect: true}`. Kinds: thing, component, remote, provider, get, invoke, call,
stack (a reference to one), export, transform, fail, log. `in` are properties: a text `=a.made` is an output
of `a`, `=a` itself, `{secret: x}` a secret. Other keys are resource options under their names in the SDK,
which name resources by their logical names. Each is waited for before the next: one order, whoever runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi
from pulumi.automation._server import LanguageServer

_THING: Final = "fake:index:Thing"
_COMPONENT: Final = "test:index:Component"
_OF_RESOURCES: Final = ("parent", "deleted_with", "provider", "depends_on", "replace_with", "providers")


class _Thing(pulumi.CustomResource):
    def __init__(
        self, type_: str, name: str, inputs: Mapping[str, Any], options: pulumi.ResourceOptions
    ) -> None:
        super().__init__(type_, name, {"made": None, "name": None, **inputs}, options)


class _Remote(pulumi.ComponentResource):
    def __init__(self, name: str, inputs: Mapping[str, Any], options: pulumi.ResourceOptions) -> None:
        super().__init__("fake:index:Room", name, {"chair": None, **inputs}, options, remote=True)


class _Provider(pulumi.ProviderResource):
    def __init__(self, name: str, inputs: Mapping[str, Any], options: pulumi.ResourceOptions) -> None:
        super().__init__("fake", name, inputs, options)


def _ignore(_: object) -> None: ...


@dataclass
class Program:
    """Does what its rows say; `note` is told of hooks that run."""

    rows: Sequence[Mapping[str, Any]] = ()
    note: Callable[[tuple[str, str]], None] = _ignore
    _made: dict[str, Any] = field(default_factory=dict[str, Any])

    def served(self) -> LanguageServer:
        """Return what the engine asks to run it."""
        return LanguageServer(self._run)

    async def _run(self) -> None:
        self._made.clear()
        root: Any = pulumi.runtime.get_root_resource()
        await root.urn.future()
        for row in self.rows:
            (kind, name), *_ = row.items()
            arguments = {key: value for key, value in row.items() if key not in (kind, "in")}
            await getattr(self, f"_{kind}")(name, self._value(row.get("in", {})), arguments)

    # What a row can be

    async def _thing(self, name: str, inputs: Any, options: dict[str, Any]) -> None:
        type_ = options.pop("type", _THING)
        await self._keep(name, _Thing(type_, name, inputs, self._options(options)))

    async def _component(self, name: str, inputs: Any, options: dict[str, Any]) -> None:
        outputs = self._value(options.pop("out", {}))
        component = pulumi.ComponentResource(
            options.pop("type", _COMPONENT), name, inputs, self._options(options)
        )
        await self._keep(name, component)
        component.register_outputs(outputs)

    async def _remote(self, name: str, inputs: Any, options: dict[str, Any]) -> None:
        await self._keep(name, _Remote(name, inputs, self._options(options)))

    async def _provider(self, name: str, inputs: Any, options: dict[str, Any]) -> None:
        await self._keep(name, _Provider(name, inputs, self._options(options)))

    async def _get(self, name: str, inputs: Any, options: dict[str, Any]) -> None:
        merged = pulumi.ResourceOptions.merge(
            self._options({key: value for key, value in options.items() if key != "id"}),
            pulumi.ResourceOptions(id=self._value(options["id"])),
        )
        await self._keep(name, _Thing(_THING, name, inputs, merged))

    async def _stack(self, name: str, inputs: Any, options: dict[str, Any]) -> None:
        del inputs
        await self._keep(name, pulumi.StackReference(name, options["of"]))

    async def _invoke(self, name: str, inputs: Any, options: dict[str, Any]) -> None:
        caught = options.pop("caught", False)
        token = options.pop("token", "fake:index:echo")
        answer = pulumi.runtime.invoke_output(token, inputs, self._invoke_options(options))
        self._made[name] = answer
        try:
            await answer.future()
        except Exception:
            if not caught:
                raise

    async def _call(self, name: str, inputs: Any, options: dict[str, Any]) -> None:
        answer: Any = pulumi.runtime.call("fake:index:Room/sit", inputs, self._made[options["of"]])
        self._made[name] = answer
        await answer.future()

    async def _export(self, values: Any, inputs: Any, options: dict[str, Any]) -> None:
        del inputs, options
        for key, value in values.items():
            pulumi.export(key, self._value(value))

    async def _transform(self, name: str, inputs: Any, options: dict[str, Any]) -> None:
        del inputs, options
        pulumi.runtime.register_resource_transform(_TRANSFORMS[name])

    async def _fail(self, message: str, inputs: Any, options: dict[str, Any]) -> None:
        del inputs, options
        raise pulumi.RunError(message)

    async def _log(self, message: str, inputs: Any, options: dict[str, Any]) -> None:
        del inputs
        about = self._made.get(options.get("about", ""))
        getattr(pulumi.log, options.get("severity", "info"))(message, about)

    # What they are made of

    async def _keep(self, name: str, resource: Any) -> None:
        self._made[name] = resource
        # Who fails is told by the engine; the SDK ends the program for it, or goes on without it.
        with suppress(Exception):
            await resource.urn.future()

    def _value(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith("="):
            return self._found(*value[1:].partition("."))
        if isinstance(value, Mapping):
            (key, held), *rest = value.items() or [("", None)]
            if key in _SPECIAL and not rest:
                return _SPECIAL[key](self._value(held))
            return {key: self._value(each) for key, each in value.items()}
        return [self._value(each) for each in value] if isinstance(value, list) else value

    def _found(self, name: str, dot: str, key: str) -> Any:
        found = self._made[name]
        if not dot:
            return found
        if isinstance(found, pulumi.StackReference):
            return found.get_output(key)
        if isinstance(found, pulumi.Output):
            answer: pulumi.Output[Any] = found
            return answer.apply(lambda fields: fields[key])
        return getattr(found, key) if key in ("urn", "id") else found.__dict__[key]

    def _named(self, value: Any) -> Any:
        return [self._made[each] for each in value] if isinstance(value, list) else self._made[value]

    def _options(self, options: Mapping[str, Any]) -> pulumi.ResourceOptions:
        found = {key: self._named(value) if key in _OF_RESOURCES else value for key, value in options.items()}
        if "aliases" in found:
            found["aliases"] = [self._alias(each) for each in found["aliases"]]
        if "custom_timeouts" in found:
            found["custom_timeouts"] = pulumi.CustomTimeouts(**found["custom_timeouts"])
        if "transforms" in found:
            found["transforms"] = [_TRANSFORMS[each] for each in found["transforms"]]
        if "hooks" in found:
            hooks: dict[str, Any] = {
                when: [self._hook(each) for each in names] for when, names in found["hooks"].items()
            }
            found["hooks"] = pulumi.ResourceHookBinding(**hooks)
        return pulumi.ResourceOptions(**found)

    def _invoke_options(self, options: Mapping[str, Any]) -> pulumi.InvokeOutputOptions:
        found = {key: self._named(value) if key in _OF_RESOURCES else value for key, value in options.items()}
        return pulumi.InvokeOutputOptions(**found)

    def _alias(self, alias: Any) -> Any:
        if isinstance(alias, str):
            return alias if alias.startswith("urn:") else pulumi.Alias(name=alias)
        parent = {"parent": self._named(alias["parent"])} if alias.get("parent") else {}
        return pulumi.Alias(**{**alias, **parent})

    def _hook(self, name: str) -> pulumi.ResourceHook:
        if name in self._made:
            return self._made[name]

        def run(args: pulumi.ResourceHookArgs) -> None:
            self.note((name, args.urn))
            if name.startswith("bad"):
                raise ValueError(name)

        self._made[name] = pulumi.ResourceHook(
            name, run, pulumi.ResourceHookOptions(on_dry_run="dry" in name)
        )
        return self._made[name]


def _paint(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
    if args.custom:
        return pulumi.ResourceTransformResult({**args.props, "color": "painted"}, args.opts)
    return None


def _shield(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult:
    options = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(protect=True))
    return pulumi.ResourceTransformResult(args.props, options)


_SPECIAL: Final[Mapping[str, Callable[[Any], Any]]] = {
    "secret": pulumi.Output.secret,
    "config": lambda key: pulumi.Config().require_secret(key),
    "asset": pulumi.StringAsset,
}
_TRANSFORMS: Final = {"paint": _paint, "shield": _shield}
