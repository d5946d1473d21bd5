"""A dynamic resource that is nowhere but in the state."""

from typing import Any

from pulumi.dynamic import CreateResult, Resource, ResourceProvider


class Provider(ResourceProvider):
    """Takes what it is given."""

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Return it under its name."""
        return CreateResult(props["name"], props)


class Trivial(Resource):
    """One of them."""
