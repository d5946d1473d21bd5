"""What a live object says about the fields that were declared."""

from typing import Final

from pulumi_sandbox.protocol.values import Properties, Value, text
from pulumi_sandbox.providers.kubernetes import kinds

_FREE_KEYS: Final = frozenset(
    {"annotations", "binaryData", "data", "labels", "matchLabels", "nodeSelector", "parameters", "stringData"}
)
"""Below these keys an empty text is one that was meant."""


def declared_part(live: Properties, inputs: Properties) -> Properties:
    """Return what is live of what was declared: the shape of the inputs, with the values of the live object.

    Fields nobody declared are left out, be they defaults or those of other managers: they are no drift. Lists
    are compared place by place. Where the server drops an empty field of a built-in kind, it stands.
    """
    return _part(live, inputs, typed=_is_typed(inputs))


def in_live_form(inputs: Properties, live: Properties) -> Properties:
    """Return the inputs in the form in which the server keeps them, as far as the live object shows it.

    Two inputs that the server keeps alike are equal then, whichever provider recorded the older one: the
    genuine provider records the server's form.
    """
    return _form(inputs, live, typed=_is_typed(inputs))


def _is_typed(inputs: Properties) -> bool:
    """Whether the server reads the object into a type of its own, and writes it in that type's form."""
    return kinds.is_built_in(text(inputs.get("apiVersion")))


def _form(inputs: Properties, live: Properties, *, typed: bool) -> Properties:
    return {
        key: _form_value(declared, live[key], typed=typed and key not in _FREE_KEYS)
        if key in live
        else declared
        for key, declared in inputs.items()
        if key in live or not (typed and _is_empty(declared))
    }


def _form_value(declared: Value, live: Value, *, typed: bool) -> Value:
    if isinstance(live, dict) and isinstance(declared, dict):
        return _form(declared, live, typed=typed)
    if isinstance(live, list) and isinstance(declared, list):
        formed = [_form_value(item, like, typed=typed) for item, like in zip(declared, live, strict=False)]
        return formed + declared[len(formed) :]
    return declared


def _part(live: Properties, inputs: Properties, *, typed: bool) -> Properties:
    part: Properties = {}
    for key, declared in inputs.items():
        if key in live:
            part[key] = _part_value(live[key], declared, typed=typed and key not in _FREE_KEYS)
        elif typed and _is_empty(declared):
            part[key] = declared
    return part


def _part_value(live: Value, declared: Value, *, typed: bool) -> Value:
    if isinstance(live, dict) and isinstance(declared, dict):
        return _part(live, declared, typed=typed)
    if isinstance(live, list) and isinstance(declared, list):
        return [_part_value(item, like, typed=typed) for item, like in zip(live, declared, strict=False)]
    return live


def _is_empty(value: Value) -> bool:
    return value is None or value is False or value == 0 or value in ("", [], {})
