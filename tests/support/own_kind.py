"""A kind of provider that a stack's own code could register; never imported by the tests' own process."""

from components.secret_stores.clients.client import ClientRequest, Kept, SecretsClient, Validity, Value
from components.secret_stores.consumers import Place, RemoteRef
from components.secret_stores.kinds import KINDS
from components.secret_stores.model import ProviderSpec


class EchoClient:
    """Says what it is asked for, and who asks."""

    def __init__(self, greeting: str, caller: str) -> None:
        self._said = f"{greeting} {caller}"

    def validate(self) -> Validity:
        return Validity.READY

    def read(self, ref: RemoteRef) -> Value | None:
        return Value(f"{self._said}: {ref.key}".encode(), "1")

    def look(self, place: Place, owner: str) -> Kept | None:
        raise NotImplementedError

    def write(self, place: Place, content: bytes, owner: str, over: Kept | None) -> bool:
        raise NotImplementedError

    def remove(self, place: Place, seen: Kept) -> bool:
        raise NotImplementedError


def open_echo(request: ClientRequest) -> SecretsClient:
    spec: EchoSpec = request.spec
    return EchoClient(spec.greeting, request.caller)


@KINDS.register("Echo", embedded="echo", client=open_echo, by_caller=True)
class EchoSpec(ProviderSpec):
    greeting: str
