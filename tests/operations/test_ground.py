from __future__ import annotations

from pathlib import Path

import pytest
from pulumi_sandbox.services.progress import silent

from components.errors import CredfleetError
from operations import ground
from operations.cluster import Cluster
from operations.ground import Ground, choose
from operations.site import Site

MINE = Path("/home/me/.kube/config")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> dict[str, str | None]:
    """Map the kubeconfigs of the user's clusters, and `own`, to the uid each cluster answers with."""
    uids: dict[str, str | None] = {str(MINE): "uid-mine", "own": "uid-own"}

    def contact(kubeconfig: Path, context: str | None) -> Cluster:
        return Cluster(kubeconfig, context or "current", f"https://{kubeconfig.name}", uids[str(kubeconfig)])

    def own(site: Site, context: str | None, progress: object) -> Ground:
        return Ground(site.control_plane, "https://own", uids["own"], own=True)

    monkeypatch.setattr(ground, "contact", contact)
    monkeypatch.setattr(ground, "_own", own)
    return uids


def chosen(site: Site, kubeconfig: Path | None = None, *, yes: bool = False) -> tuple[Ground, bool]:
    return choose(site, "dev", "ctx", kubeconfig, yes=yes, progress=silent)


def test_without_a_cluster_of_the_users_the_sandboxs_own_is_started(
    site: Site, clusters: dict[str, str | None]
) -> None:
    found, stale = chosen(site)
    assert (found.own, found.uid, stale) == (True, "uid-own", False)


def test_a_cluster_of_the_users_is_written_to_only_when_it_is_confirmed(
    site: Site, clusters: dict[str, str | None]
) -> None:
    with pytest.raises(CredfleetError) as told:
        chosen(site, MINE)
    assert told.value.code == "not-confirmed"
    assert "context ctx" in told.value.cause
    found, _ = chosen(site, MINE, yes=True)
    assert (found.own, found.kubeconfig) == (False, MINE)


def test_a_cluster_that_was_confirmed_is_used_again_without_being_named(
    site: Site, clusters: dict[str, str | None]
) -> None:
    chosen(site, MINE, yes=True)[0].remember(site.clusters("dev"))
    found, stale = chosen(site)
    assert (found.own, found.kubeconfig, stale) == (False, MINE, False)


def test_a_stack_that_is_on_one_cluster_is_not_written_to_another(
    site: Site, clusters: dict[str, str | None]
) -> None:
    chosen(site)[0].remember(site.clusters("dev"))
    with pytest.raises(CredfleetError) as told:
        chosen(site, MINE, yes=True)
    assert told.value.code == "other-cluster"


def test_a_users_cluster_that_was_made_anew_is_another_cluster(
    site: Site, clusters: dict[str, str | None]
) -> None:
    chosen(site, MINE, yes=True)[0].remember(site.clusters("dev"))
    clusters[str(MINE)] = "uid-after"
    with pytest.raises(CredfleetError) as told:
        chosen(site)
    assert told.value.code == "other-cluster"


def test_the_state_of_an_own_cluster_that_was_made_anew_is_stale(
    site: Site, clusters: dict[str, str | None]
) -> None:
    chosen(site)[0].remember(site.clusters("dev"))
    assert chosen(site)[1] is False
    clusters["own"] = "uid-after"
    assert chosen(site)[1] is True


def test_naming_the_file_of_the_cluster_a_stack_is_on_already_asks_nothing(
    site: Site, clusters: dict[str, str | None]
) -> None:
    chosen(site)[0].remember(site.clusters("dev"))
    clusters[str(MINE)] = "uid-own"
    found, stale = chosen(site, MINE)
    assert (found.own, stale) == (True, False)


def test_clusters_that_hide_their_uid_are_told_apart_by_their_address() -> None:
    hidden = Ground(MINE, "https://a", None, own=False)
    assert hidden.is_same_cluster(Ground(MINE, "https://a", "uid", own=False))
    assert not hidden.is_same_cluster(Ground(MINE, "https://b", None, own=False))
