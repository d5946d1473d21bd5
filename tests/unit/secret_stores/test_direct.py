"""Who is let through to a client, and what refuses the others before anybody is asked."""

from typing import Any

import pytest

from components.errors import Problem, StoreError
from components.secret_stores.admission import (
    Purpose,
    Use,
    admit,
    document_of,
    provider_from,
    store_from,
)
from components.secret_stores.clients.client import Capability
from components.secret_stores.consumers import RemoteRef
from components.secret_stores.direct import Clients, StackTarget, client_of, retry
from components.secret_stores.kinds import KINDS
from components.secret_stores.model import AnyStore, ProviderSpec
from components.secret_stores.referent import pin, resolve, selectors
from components.secret_stores.registry import Maintenance, RefRegister
from components.secret_stores.specs import KubernetesSpec
from tests.support.cases import cases
from tests.support.stores import (
    CLUSTER_PROVIDERS,
    cluster_store,
    kind,
    provider,
    ref,
    selector,
    store_in,
    token_spec,
)

FAKE: dict[str, Any] = {"fake": {"data": []}}
LOGIN: dict[str, Any] = {"auth": {"serviceAccount": selector(None)}, "remoteNamespace": "pool"}


def way(store: AnyStore, caller: str = "a", purpose: Purpose = Purpose.READ, **labels: str) -> Use:
    return admit(store, None, caller, labels, purpose)


def refusal(store: AnyStore, caller: str = "a", purpose: Purpose = Purpose.READ, **labels: str) -> StoreError:
    with pytest.raises(StoreError) as caught:
        way(store, caller, purpose, **labels)
    return caught.value


@pytest.mark.parametrize("controller", ["", "credfleet"])
def test_a_store_without_a_class_or_of_ours_is_served(controller: str) -> None:
    assert way(store_in("a", provider=FAKE, controller=controller)).provider.key.title == "Fake/a/store"


def test_a_store_of_another_class_is_refused() -> None:
    error = refusal(store_in("a", provider=FAKE, controller="eso"))
    assert (error.code, error.place) == ("refused", "SecretStore/a/store")
    assert "it is of class eso" in error.problem


@cases(
    "said, purpose, lends",
    {
        "ready": (0, Purpose.READ, True),
        "unknown-counts-as-ready": (1, Purpose.READ, True),
        "not-ready": (2, Purpose.READ, False),
        "pushes-skip-it": (2, Purpose.PUSH, True),
    },
)
def test_a_store_that_is_not_ready_is_not_read(said: int, purpose: Purpose, *, lends: bool) -> None:
    use = way(store_in("a", provider={"fake": {"data": [], "validationResult": said}}), purpose=purpose)
    if lends:
        assert client_of(use, StackTarget(), purpose, Clients()).read(RemoteRef(key="none")) is None
    else:
        with pytest.raises(StoreError) as caught:
            client_of(use, StackTarget(), purpose, Clients())
        assert (caught.value.code, caught.value.place) == ("not-ready", "SecretStore/a/store")


def test_what_is_lent_says_the_namespace_of_every_selector() -> None:
    of = provider("Kubernetes", LOGIN)
    use = admit(cluster_store(providerRef=ref(of)), of, "a", {}, Purpose.READ)
    assert isinstance(use.provider.spec, KubernetesSpec)
    assert {path: each.namespace for path, each in selectors(use.provider.spec)} == {
        "auth.serviceAccount": "a"
    }
    assert [each.namespace for _, each in selectors(of.spec)] == [None]


@pytest.mark.parametrize(
    ("name", "spec"), [("GitLab", token_spec(None)), ("AzureKV", {"vaultUrl": "https://x.vault.azure.net"})]
)
def test_kinds_without_a_client_say_so_and_name_the_other_back_end(name: str, spec: dict[str, Any]) -> None:
    of = provider(name, spec, "a")
    with pytest.raises(StoreError, match=f"no client for providers of kind {name}") as caught:
        admit(store_in("a", providerRef=ref(of)), of, "a", {}, Purpose.READ)
    assert (caught.value.code, "backend: eso" in caught.value.fix) == ("no-client", True)


def register(capabilities: Capability, maintenance: Maintenance = Maintenance.MAINTAINED) -> RefRegister:
    known = RefRegister()
    fake = kind("Fake").client
    known.register("Own", embedded="own", client=fake, capabilities=capabilities, maintenance=maintenance)(
        ProviderSpec
    )
    return known


@pytest.mark.parametrize(
    ("capabilities", "purpose", "lets"),
    [
        (Capability.READ_ONLY, Purpose.READ, True),
        (Capability.READ_ONLY, Purpose.PUSH, False),
        (Capability.WRITE_ONLY, Purpose.READ, False),
        (Capability.WRITE_ONLY, Purpose.PUSH, True),
        (Capability.READ_WRITE, Purpose.READ, True),
        (Capability.READ_WRITE, Purpose.PUSH, True),
    ],
)
def test_a_kind_is_used_for_what_it_can_do(capabilities: Capability, purpose: Purpose, *, lets: bool) -> None:
    store, kinds = store_in("a", provider={"own": {}}), register(capabilities)
    if lets:
        assert admit(store, None, "a", {}, purpose, kinds=kinds).kind.name == "Own"
    else:
        with pytest.raises(StoreError, match=f"providers of kind Own are {capabilities}"):
            admit(store, None, "a", {}, purpose, kinds=kinds)


@pytest.mark.parametrize(
    ("maintenance", "warning"),
    [
        (Maintenance.MAINTAINED, None),
        (Maintenance.NOT_MAINTAINED, "providers of kind Own are not maintained: their faults stay"),
        (Maintenance.DEPRECATED, "providers of kind Own are deprecated and will go: move to another kind"),
    ],
)
def test_a_kind_that_nobody_maintains_comes_with_a_warning(
    maintenance: Maintenance, warning: str | None
) -> None:
    known = register(Capability.READ_WRITE, maintenance)
    assert kind("Own", kinds=known).warning == warning


def test_a_store_and_its_provider_are_the_same_in_another_process() -> None:
    of = provider("Kubernetes", LOGIN)
    conditions = [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]
    for store in (cluster_store(providerRef=ref(of), conditions=conditions), store_in("a", provider=FAKE)):
        assert store_from(document_of(store)) == store
    assert provider_from(document_of(of)) == of


def test_a_kind_of_ones_own_is_registered_in_another_process_by_its_module() -> None:
    document = document_of(provider("Fake", {"data": []}))
    assert document["module"] == "components.secret_stores.kinds"
    with pytest.raises(StoreError, match="did you mean Fake") as unknown:
        provider_from({**document, "kind": "Fakes"})
    assert unknown.value.code == "refused"


def test_a_moment_is_waited_for_as_often_as_the_store_says_and_other_faults_are_told_at_once() -> None:
    use = way(store_in("a", provider=FAKE, retrySettings={"maxRetries": 2, "retryInterval": "1m30s"}))
    waits: list[float] = []
    calls: list[str] = []

    def work(code: str) -> Any:
        calls.append(code)
        raise StoreError(code=code, place="x", problem="y", fix="z")

    for code in ("not-allowed", "absent"):
        with pytest.raises(StoreError):
            retry(use, lambda code=code: work(code), waits.append)
    assert (waits, calls) == ([90.0, 90.0], ["not-allowed"] * 3 + ["absent"])


def test_a_spec_with_every_namespace_written_out_resolves_to_itself() -> None:
    of = provider("Kubernetes", LOGIN)
    store = cluster_store(providerRef=ref(of))
    first = resolve(store, of, "a", KINDS)
    assert not isinstance(first, Problem)
    again = resolve(store, of.model_copy(update={"spec": pin(of.spec, first.namespaces)}), "b", KINDS)
    assert not isinstance(again, Problem)
    assert (again.namespaces, again.referent) == (first.namespaces, False)
    assert of.api_version == CLUSTER_PROVIDERS
