"""A pool whose rules are in force, and who may do what in it."""

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from tests.support.guarded_pool import GuardedPool, guarded_pool

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane


@pytest.fixture(scope="module")
def pool(
    control_plane: "ControlPlane", admin: "DynamicClient", tmp_path_factory: pytest.TempPathFactory
) -> Generator[GuardedPool]:
    with guarded_pool(control_plane, admin, tmp_path_factory.mktemp("people")) as pool:
        yield pool
