"""What the definitions of Pulumi Kubernetes Operator say of the Stack in deploy/, on the real API server.

The operator itself does not run: it needs nodes.
"""

from __future__ import annotations

from collections.abc import Generator
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml
from kubernetes.dynamic.exceptions import DynamicApiError, NotFoundError

from tests.support.deployed import objects
from tests.support.noticed import until
from tests.support.proving import PROVES, tried
from tests.witness.published import published

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

pytestmark = pytest.mark.built

VERSION: Final = "v2.9.0"
SHA256: Final = "d8ce0513bb77d5d57753e521fd42e87a87bdaf7abda1be2584aa23c1c03ea290"
DEFINITION: Final = (
    f"https://raw.githubusercontent.com/pulumi/pulumi-kubernetes-operator/{VERSION}"
    "/deploy/crds/pulumi.com_stacks.yaml"
)
STACKS: Final = "/apis/pulumi.com/v1/namespaces/default/stacks?dryRun=All&fieldValidation=Strict"


@pytest.fixture
def stack(admin: DynamicClient) -> Generator[dict[str, Any]]:
    """Return the Stack of deploy/, for a namespace that is there, on a server that knows its kind."""
    if not PROVES:
        pytest.skip("make prove WHAT=witness fetches what was published")
    api: Any = admin.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    definition = api.create(body=yaml.safe_load(published(DEFINITION, SHA256)))
    (found,) = [each for each in objects("gitops.yaml", "credfleet") if each["kind"] == "Stack"]
    found["metadata"]["namespace"] = "default"
    until(lambda: is_served(admin, found))
    yield found
    api.delete(name=definition.metadata.name)


def is_served(admin: DynamicClient, stack: dict[str, Any]) -> bool:
    try:
        admin.request("post", STACKS, body=stack)
    except NotFoundError:
        return False
    return True


def test_the_operators_definition_takes_the_stack_of_the_manifests_as_it_is(
    admin: DynamicClient, stack: dict[str, Any]
) -> None:
    taken = admin.request("post", STACKS, body=stack).to_dict()
    assert taken["spec"] == stack["spec"]
    for where in ("spec", "workspaceTemplate"):
        spoiled = deepcopy(stack)
        target = spoiled["spec"] if where == "spec" else spoiled["spec"]["workspaceTemplate"]["spec"]
        target["unheardOf"] = True
        with pytest.raises(DynamicApiError, match="unheardOf"):
            admin.request("post", STACKS, body=spoiled)
    tried(f"Pulumi Kubernetes Operator {VERSION}: manifests")
