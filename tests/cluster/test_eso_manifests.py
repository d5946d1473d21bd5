"""Compiled manifests before the real API server with ESO's own definitions, if these lie beside the project.

The control plane is the module's own: definitions are the whole cluster's, and other tests count on one
without.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from pulumi_sandbox.services.build import binaries
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.parts import ADMIN
from pydantic import ValidationError

from components.errors import Problem
from components.secret_stores.consumers import ExternalSecret, PushSecret
from components.secret_stores.convert import convert, embed
from components.secret_stores.eso import Manifest, compile_push, compile_read
from components.secret_stores.kinds import KINDS
from components.secret_stores.registry import ProviderKind
from sandbox.tests.support.cluster import ROOT, client_for
from tests.support.cases import tabled
from tests.support.proving import counted, tried
from tests.support.shapes import SHAPES, drawn, least, selectors_of
from tests.support.stores import provider, store_in

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

DEFINITIONS = ROOT.parent / "shared/data/external-secrets-crds"
GOLDEN = sorted((ROOT / "tests/unit/secret_stores/golden").glob("*.yaml"))
NAMESPACES = ("tenant-acme", "tenant-globex", "platform")
SERVING_SECONDS = 30

pytestmark = pytest.mark.skipif(
    not DEFINITIONS.is_dir(), reason=f"ESO's CustomResourceDefinitions are not in {DEFINITIONS}"
)


def documents(path: Path) -> list[Manifest]:
    return list(yaml.load_all(path.read_text(), yaml.CSafeLoader))


def known(key: str) -> ProviderKind:
    kind = KINDS.embedded(key)
    assert not isinstance(kind, Problem)
    return kind


class Eso:
    """An API server that knows ESO's kinds, and takes no field that they do not have."""

    def __init__(self, client: DynamicClient, definitions: list[Manifest]) -> None:
        self._client = client
        self._paths: dict[tuple[str, str], str] = {}
        for definition in definitions:
            spec = definition["spec"]
            for version in spec["versions"]:
                served = (f"{spec['group']}/{version['name']}", spec["names"]["kind"])
                self._paths[served] = spec["names"]["plural"]

    def path(self, manifest: Manifest) -> str:
        api_version = manifest["apiVersion"]
        namespace = manifest["metadata"].get("namespace")
        within = f"/namespaces/{namespace}" if namespace else ""
        return f"/apis/{api_version}{within}/{self._paths[api_version, manifest['kind']]}"

    def take(self, manifest: Manifest) -> Manifest:
        """Hand in a manifest without keeping it, and see what the server makes of it."""
        where = f"{self.path(manifest)}?dryRun=All&fieldValidation=Strict"
        return self._client.request("post", where, body=manifest).to_dict()


@pytest.fixture(scope="module")
def eso(tmp_path_factory: pytest.TempPathFactory) -> Generator[Eso]:
    folder = tmp_path_factory.mktemp("eso")
    plane = ControlPlane.start(folder / "plane", binaries=binaries(), die_with_parent=True)
    try:
        with client_for(plane.kubeconfig(ADMIN.name), folder / "discovery.json") as client:
            definitions = [each for path in sorted(DEFINITIONS.glob("*.yaml")) for each in documents(path)]
            eso = Eso(client, definitions)
            install(client, definitions, eso)
            yield eso
    finally:
        plane.stop()


def install(client: DynamicClient, definitions: list[Manifest], eso: Eso) -> None:
    spaces = client.resources.get(api_version="v1", kind="Namespace")
    for namespace in NAMESPACES:
        spaces.create(body={"metadata": {"name": namespace}})
    api = client.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    for definition in definitions:
        api.create(body=definition)
    for definition in definitions:
        name = definition["metadata"]["name"]
        events = api.watch(name=name, timeout=SERVING_SECONDS)
        assert any(established(event["raw_object"]) for event in events), name
    await_served(eso)


def established(definition: Manifest) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def await_served(eso: Eso) -> None:
    """A server serves an established kind a moment after it says so."""
    from kubernetes.dynamic.exceptions import NotFoundError

    deadline = time.monotonic() + SERVING_SECONDS
    for path in GOLDEN:
        for manifest in documents(path):
            while True:
                try:
                    eso.take(manifest)
                    break
                except NotFoundError:
                    assert time.monotonic() < deadline


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_golden_manifest_is_taken_and_nothing_is_added_to_it(eso: Eso, path: Path) -> None:
    for manifest in documents(path):
        assert eso.take(manifest)["spec"] == manifest["spec"]


def golden(name: str) -> Manifest:
    [path] = [path for path in GOLDEN if path.stem == name]
    return documents(path)[0]


def with_second_provider(manifest: Manifest) -> None:
    manifest["spec"]["provider"]["fake"] = {"data": []}


def with_provider_ref(manifest: Manifest) -> None:
    manifest["spec"]["providerRef"] = {"kind": "GitLab", "name": "variables"}


def with_unknown_namespace_field(manifest: Manifest) -> None:
    manifest["spec"]["provider"]["gitlab"]["auth"]["SecretRef"]["accessToken"]["nameSpace"] = "a"


def with_bad_namespace(manifest: Manifest) -> None:
    manifest["spec"]["provider"]["gitlab"]["auth"]["SecretRef"]["accessToken"]["namespace"] = "A"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (with_second_provider, "spec.provider: Too many: 2"),
        (with_provider_ref, 'unknown field "spec.providerRef"'),
        (with_unknown_namespace_field, "accessToken.nameSpace"),
        (with_bad_namespace, "accessToken.namespace"),
    ],
)
def test_a_spoilt_manifest_is_refused(eso: Eso, spoil: Callable[[Manifest], None], words: str) -> None:
    from kubernetes.dynamic.exceptions import DynamicApiError

    manifest = golden("own-provider")
    spoil(manifest)
    with pytest.raises(DynamicApiError) as caught:
        eso.take(manifest)
    assert caught.value.status in (400, 422)
    assert words in caught.value.summary()


SELECTOR = {"name": "login", "key": "k"}


@tabled("block")
def test_our_defaults_of_a_block_are_those_that_the_server_fills_in(eso: Eso, block: dict[str, Any]) -> None:
    store = store_in("tenant-acme", provider=block)
    converted = convert(store, block, KINDS)
    assert not isinstance(converted, Problem)
    taken = eso.take(
        {
            "apiVersion": "external-secrets.io/v1",
            "kind": "SecretStore",
            "metadata": {"name": store.name, "namespace": store.namespace},
            "spec": {"provider": block},
        }
    )
    assert taken["spec"]["provider"] == embed(converted, KINDS)


def of_federation(**said: Any) -> dict[str, Any]:
    return {"gcpsm": {"auth": {"workloadIdentityFederation": said}}}


@tabled("block")
def test_a_block_that_the_server_refuses_is_refused_by_us(eso: Eso, block: dict[str, Any]) -> None:
    from kubernetes.dynamic.exceptions import DynamicApiError

    manifest = golden("own-provider")
    with pytest.raises(DynamicApiError) as caught:
        eso.take({**manifest, "spec": {"provider": block}})
    assert caught.value.status in (400, 422)
    store = store_in("tenant-acme", provider=block)
    with pytest.raises(ValidationError):
        convert(store, block, KINDS)


def blocks_of(key: str) -> Iterator[dict[str, Any]]:
    """The smallest block with each selector of a kind, and drawn ones."""
    shape = SHAPES[key]
    yield from ({key: least(shape, path)} for path in selectors_of(shape))
    random = Random(key)
    yield from ({key: drawn(random, shape)} for _ in range(counted(3, 100)))


@pytest.mark.parametrize("key", [key for key in SHAPES if known(key).by_shape])
def test_of_a_kind_known_by_its_shape_we_take_what_the_server_takes_and_fill_in_the_same(
    eso: Eso, key: str
) -> None:
    from kubernetes.dynamic.exceptions import BadRequestError, UnprocessibleEntityError

    manifest = golden("own-provider")
    for block in blocks_of(key):
        tried("ESO's definitions on the API server: blocks of providers")
        try:
            taken = eso.take({**manifest, "spec": {"provider": block}})["spec"]["provider"]
        except (BadRequestError, UnprocessibleEntityError):
            taken = None
        try:
            converted = convert(store_in("tenant-acme", provider=block), block, KINDS)
        except ValidationError:
            ours = None
        else:
            assert not isinstance(converted, Problem)
            ours = embed(converted, KINDS)
        assert ours == taken, block


def bare(manifest: Manifest, *kept: str) -> Manifest:
    """The manifest with what a consumer has to say only."""
    return {**manifest, "spec": {key: value for key, value in manifest["spec"].items() if key in kept}}


def test_our_defaults_of_reads_and_pushes_are_those_that_the_server_fills_in(eso: Eso) -> None:
    of = provider("GCPSM", {}, "tenant-acme")
    said = {"namespace": "tenant-acme", "name": "it", "store": {"name": "s"}}
    reads = ExternalSecret.model_validate({**said, "target": "it", "data": {"k": {"key": "x"}}})
    read = compile_read(reads, of, KINDS)
    pushed = [{"secret": "s", "key": "k", "remoteKey": "x"}]
    push = compile_push(PushSecret.model_validate({**said, "data": pushed}), of, KINDS)
    taken_read = eso.take(bare(read, "secretStoreRef", "data"))["spec"]
    taken_push = eso.take(bare(push, "secretStoreRefs", "selector", "data"))["spec"]
    assert taken_read.pop("refreshInterval") == taken_push.pop("refreshInterval") == "1h0m0s"
    assert read["spec"].pop("refreshInterval") == push["spec"].pop("refreshInterval") == "1h0m0s"
    assert read["spec"]["target"].pop("name") == "it"
    assert (taken_read, taken_push) == (read["spec"], push["spec"])
