"""Registers functions that the engine calls: transforms and hooks."""

import pulumi

config = pulumi.Config()


class Part(pulumi.CustomResource):
    """A resource of the recording provider."""

    colour: pulumi.Output[str]

    def __init__(self, name: str, colour: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("fake:index:Thing", name, {"colour": colour, "name": name}, opts)


def append(word: str) -> pulumi.ResourceTransform:
    """Return a transform that appends a word to the colour of parts."""

    def transform(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
        if args.type_ != "fake:index:Thing":
            return None
        props = {**args.props, "colour": f"{args.props['colour']} {word}"}
        return pulumi.ResourceTransformResult(props, args.opts)

    return transform


def protect(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult:
    """Turn an option on."""
    opts = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(retain_on_delete=True))
    return pulumi.ResourceTransformResult(args.props, opts)


def tell(moment: str) -> pulumi.ResourceHook:
    """Return a hook that says when it is called and with what."""

    def hook(args: pulumi.ResourceHookArgs) -> None:
        old = (args.old_inputs or {}).get("colour")
        new = (args.new_inputs or {}).get("colour")
        made = (args.new_outputs or {}).get("made") is not None
        pulumi.log.info(f"{moment} {args.name}: {old} -> {new}, made {made}")
        if config.get("failing") == moment:
            raise RuntimeError("a hook fails")

    return pulumi.ResourceHook(moment, hook, pulumi.ResourceHookOptions(on_dry_run=moment == "before-create"))


pulumi.runtime.register_resource_transform(append("by-the-stack"))

hooks = pulumi.ResourceHookBinding(
    before_create=[tell("before-create")],
    after_create=[tell("after-create")],
    before_update=[tell("before-update")],
    after_update=[tell("after-update")],
    before_delete=[tell("before-delete")],
    after_delete=[tell("after-delete")],
)

parent = pulumi.ComponentResource(
    "test:index:Parent", "parent", None, pulumi.ResourceOptions(transforms=[append("by-the-parent")])
)
Part(
    "child",
    "blue",
    pulumi.ResourceOptions(parent=parent, transforms=[append("by-itself"), protect]),
)
if not config.get_bool("without-hooked"):
    Part("hooked", config.get("colour") or "red", pulumi.ResourceOptions(hooks=hooks))
