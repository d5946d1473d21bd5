"""Kinds of provider that credfleet knows: spec, client, and features of the direct back end.

The state of stacks contains the name of this module, which registers kinds; it must not change.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from components.secret_stores.clients.client import Capability
from components.secret_stores.clients.fake import open_fake
from components.secret_stores.clients.gcpsm import gcpsm_limits, open_gcpsm
from components.secret_stores.clients.kubernetes import kubernetes_limits, open_kubernetes
from components.secret_stores.eso_kinds import know_all, spec_of
from components.secret_stores.kubernetes_server import missed_by_eso, written_out
from components.secret_stores.registry import RefRegister
from components.secret_stores.spec_faults import (
    eso_faults,
    gcpsm_names,
    gitlab_faults,
    kubernetes_faults,
    kubernetes_names,
)
from components.secret_stores.specs import FakeSpec, GcpSecretManagerSpec, KubernetesSpec

KINDS: Final = RefRegister()
"""Register of this process; a stack adds its own kinds with `@KINDS.register(…)`."""

_register = partial(KINDS.register, module=__name__)

_register("Fake", embedded="fake", client=open_fake, gathers=("extract", "name"))(FakeSpec)
_register(
    "Kubernetes",
    embedded="kubernetes",
    client=open_kubernetes,
    limits=kubernetes_limits,
    faults=kubernetes_faults,
    for_eso=written_out,
    missed=missed_by_eso,
    names=kubernetes_names,
    has_properties=True,
    has_namespaces=True,
    has_versions=False,
    gathers=("extract", "name", "tags"),
)(KubernetesSpec)
_register(
    "GCPSM",
    embedded="gcpsm",
    client=open_gcpsm,
    limits=gcpsm_limits,
    faults=eso_faults("gcpsm"),
    names=gcpsm_names,
    gathers=("extract", "name", "tags"),
)(GcpSecretManagerSpec)
_register(
    "GitLab",
    embedded="gitlab",
    faults=gitlab_faults,
    has_versions=False,
    capabilities=Capability.READ_ONLY,
    gathers=("extract", "name"),
)(spec_of("gitlab"))
_register(
    "AzureKV",
    embedded="azurekv",
    faults=eso_faults("azurekv"),
    gathers=("extract", "name", "tags"),
)(spec_of("azurekv"))

know_all(KINDS, __name__)
