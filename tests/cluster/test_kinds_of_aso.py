"""Whether a cluster serves the kinds of ASO's resources, asked before one is made; on a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
import pytest

from components.aso_credentials.resources import refusal_of_unserved
from components.connection import ClusterTarget
from tests.support.cases import tabled

if TYPE_CHECKING:
    from pulumi_sandbox.services.control_plane import ControlPlane


def made(version: str, kind: str) -> pulumi.ResourceHookArgs:
    inputs: dict[str, Any] = {"apiVersion": version, "kind": kind}
    return pulumi.ResourceHookArgs("urn", "", "team-a/x", "type", new_inputs=inputs)


@tabled("version, kind")
def test_a_kind_that_is_not_served_is_refused_with_a_fix(
    version: str, kind: str, control_plane: ControlPlane
):
    refuse = refusal_of_unserved(ClusterTarget(kubeconfig=str(control_plane.kubeconfig("admin"))))
    with pytest.raises(pulumi.RunError, match=f"team-a/x: the cluster does not serve {version}/{kind}"):
        refuse(made(version, kind))


def test_a_kind_that_is_served_or_a_cluster_that_cannot_be_seen_refuses_nothing(control_plane: ControlPlane):
    seen = refusal_of_unserved(ClusterTarget(kubeconfig=str(control_plane.kubeconfig("admin"))))
    seen(made("rbac.authorization.k8s.io/v1", "Role"))
    unseen = refusal_of_unserved(ClusterTarget(kubeconfig="/no/such/file"))
    unseen(made("resources.azure.com/v1api20200601", "ResourceGroup"))
