"""The package `gcp` as the engine meets it, before it is configured."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from pulumi_sandbox.providers.contract import Package, Provider
from pulumi_sandbox.providers.dispatch import Dispatcher, Patience
from pulumi_sandbox.providers.gcp import options
from pulumi_sandbox.providers.gcp.listing import get_secrets
from pulumi_sandbox.providers.gcp.member import Members
from pulumi_sandbox.providers.gcp.secret import Secrets
from pulumi_sandbox.providers.gcp.version import Versions
from pulumi_sandbox.providers.rest import Loss, Method, Rest, Retries, Service, ServiceRefusedError

_STATUSES: Final = frozenset({429, 500, 502, 503})
_DELAYS: Final = (0.5, 1, 2, 4, 8, 10, 10, 10)
"""The genuine provider's steps; it goes on for twenty minutes, which nobody waits for in a sandbox."""


def _after_refusal(refusal: ServiceRefusedError) -> Sequence[float]:
    return _DELAYS if refusal.status in _STATUSES else ()


def _after_loss(method: Method, loss: Loss) -> Sequence[float]:
    """Repeat what is lost, but after a connection closed without an answer only readings.

    It hides whether the request was served, so a version may have been added that nobody recorded.
    """
    repeated = loss in ("reset", "timeout") or (loss == "closed" and method == "GET")
    return _DELAYS if repeated else ()


RETRIES: Final = Retries(_after_refusal, _after_loss)


_TITLE: Final = "Google Cloud"


def package(pause: Callable[[float], None] | None = None) -> Package:
    """Return the package; `pause` stands in for waiting between attempts."""
    return Package(
        title=_TITLE,
        version="10.2.0",
        problems=options.problems,
        configure=partial(_configure, pause),
    )


def _configure(pause: Callable[[float], None] | None, given: Mapping[str, str]) -> Provider:
    chosen = options.read(given)
    patience = Patience(lambda: f"Secret Manager at {chosen.endpoint}")
    wait = pause or patience.wait
    service = Service(
        title="Secret Manager",
        find=lambda: chosen.endpoint.rstrip("/") + "/",
        headers={"Authorization": f"Bearer {chosen.token}", "User-Agent": "pulumi-sandbox"},
    )
    api = Rest(service, RETRIES, wait)
    return Dispatcher(
        _TITLE,
        {
            "gcp:secretmanager/secret:Secret": Secrets(api, chosen),
            "gcp:secretmanager/secretVersion:SecretVersion": Versions(api),
            "gcp:secretmanager/secretIamMember:SecretIamMember": Members(api, chosen, wait),
        },
        {"gcp:secretmanager/getSecrets:getSecrets": partial(get_secrets, api, chosen)},
        patience,
    )
