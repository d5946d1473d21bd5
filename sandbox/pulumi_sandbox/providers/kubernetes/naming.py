"""What an object is called, where it lives by default, and under which name its fields are managed."""

import hashlib
import secrets
from typing import Final

from pulumi_sandbox.protocol.values import Properties, Unknown
from pulumi_sandbox.providers.kubernetes import objects

CREATOR: Final = "pulumi-kubernetes"
"""The manager that creates objects (operation Update), here and in the genuine provider.

The genuine one applies later as `pulumi-kubernetes-` and eight random characters, and takes them over.
"""


def is_named(inputs: Properties) -> bool:
    """Whether the inputs name the object, be the name known yet or not."""
    called = objects.metadata(inputs).get("name")
    return bool(called) or isinstance(inputs.get("metadata"), Unknown)


def is_fixed(inputs: Properties) -> bool:
    """Whether the program chose the name, so that a successor of the object has to bear it too."""
    return is_named(inputs) and not objects.is_true(inputs, objects.AUTONAMED)


def keep_old_name(inputs: Properties, old_inputs: Properties) -> Properties:
    """Return inputs without a name the one that was made up for their forerunner."""
    if is_named(inputs) or not objects.is_true(old_inputs, objects.AUTONAMED):
        return inputs
    return _named(inputs, objects.name(old_inputs))


def make_up_name(inputs: Properties, logical_name: str, seed: bytes) -> Properties:
    """Return inputs without a name one: `<logical name>-<8 hex digits>`."""
    if is_named(inputs):
        return inputs
    suffix = hashlib.sha256(seed).hexdigest()[:8] if seed else secrets.token_hex(4)
    return _named(inputs, f"{logical_name}-{suffix}")


def manager_of(urn: str) -> str:
    """Return the manager of a resource's declared fields, `pulumi-kubernetes-<8 hex digits>`.

    Derived from the URN, because an object that a killed run created, but did not record, is known again by
    it. The genuine provider draws it at random, in the same form.
    """
    return f"{CREATOR}-{hashlib.sha256(urn.encode()).hexdigest()[:8]}"


def _named(inputs: Properties, name: str) -> Properties:
    return objects.with_annotation(objects.with_metadata(inputs, name=name), objects.AUTONAMED, "true")
