"""A provider made of kinds of resources, each of which works on plain values: secrets are kept around it."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar, TypeAlias, cast

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import Path, Properties, conceal_keys, conceal_like, reveal
from pulumi_sandbox.providers.contract import InputDiff, Problem, State
from pulumi_sandbox.providers.inputs import declared

Function: TypeAlias = Callable[[Properties], Properties]


class ResourceKind(ABC):
    """What a provider does for one type of resources; values come and go without secrets.

    Each method raises SandboxError for whatever the user can fix.
    """

    secrets: ClassVar[frozenset[str]] = frozenset()
    """The outputs that are always secret."""

    @abstractmethod
    def check(self, old: Properties, new: Properties) -> tuple[Properties, list[Problem]]:
        """Complete and judge the inputs."""

    @abstractmethod
    def diff(self, old: State, new: Properties, ignored: tuple[Path, ...]) -> InputDiff:
        """Compare new inputs with what is recorded."""

    @abstractmethod
    def preview_create(self, new: Properties) -> Properties:
        """Return the outputs a create would leave."""

    @abstractmethod
    def create(self, urn: str, new: Properties) -> State:
        """Create the resource."""

    def preview_update(self, old: State, new: Properties) -> Properties:
        """Return the outputs an update would leave: what is recorded, with the new inputs on top."""
        return {**old.outputs, **declared(new)}

    @abstractmethod
    def update(self, old: State, new: Properties) -> Properties:
        """Bring the resource to the new inputs and return its outputs."""

    @abstractmethod
    def read(self, old: State) -> State | None:
        """Return the resource as it is; None when it is gone."""

    @abstractmethod
    def delete(self, old: State) -> None:
        """Unmake the resource."""


class Dispatcher:
    """Hands each call to the kind of its resource. Safe for concurrent calls as far as the kinds are."""

    def __init__(
        self,
        title: str,
        kinds: Mapping[str, ResourceKind],
        functions: Mapping[str, Function],
        patience: Patience,
    ) -> None:
        self._title = title
        self._kinds = kinds
        self._functions = functions
        self._patience = patience

    def check(self, urn: str, old: Properties, new: Properties) -> tuple[Properties, list[Problem]]:
        """See `Provider`; every name is given."""
        kind = self._kinds.get(urns.parse(urn).type)
        if kind is None:
            served = ", ".join(sorted(self._kinds))
            return new, [Problem("", f"the sandbox's {self._title} provider serves only {served}")]
        inputs, problems = kind.check(_plain(old), _plain(new))
        return conceal_like(inputs, new), problems

    def diff(self, urn: str, old: State, new: Properties, ignored: tuple[Path, ...]) -> InputDiff:
        """See `Provider`."""
        return self._kind(urn).diff(_plain_state(old), _plain(new), ignored)

    def create(self, urn: str, new: Properties, *, preview: bool) -> State:
        """See `Provider`."""
        kind, plain = self._kind(urn), _plain(new)
        made = State("", kind.preview_create(plain), {}) if preview else kind.create(urn, plain)
        return replace(made, outputs=_concealed(made.outputs, kind, new))

    def update(self, urn: str, old: State, new: Properties, *, preview: bool) -> State:
        """See `Provider`."""
        kind = self._kind(urn)
        made = (kind.preview_update if preview else kind.update)(_plain_state(old), _plain(new))
        return State(old.id, _concealed(made, kind, new), {})

    def read(self, urn: str, old: State) -> State:
        """See `Provider`."""
        kind = self._kind(urn)
        live = kind.read(_plain_state(old))
        if live is None:
            return State("", {}, {})
        inputs = conceal_keys(conceal_like(live.inputs, old.inputs), kind.secrets)
        return State(live.id, _concealed(live.outputs, kind, old.outputs), inputs)

    def delete(self, urn: str, old: State, _seconds: float) -> None:
        """See `Provider`."""
        self._kind(urn).delete(_plain_state(old))

    def invoke(self, token: str, args: Properties) -> Properties:
        """See `Provider`."""
        function = self._functions.get(token)
        if function is None:
            raise self._not_served(token)
        return function(_plain(args))

    def cancel(self) -> None:
        """See `Provider`."""
        self._patience.cancel()

    def _kind(self, urn: str) -> ResourceKind:
        token = urns.parse(urn).type
        kind = self._kinds.get(token)
        if kind is None:
            raise self._not_served(token)
        return kind

    def _not_served(self, token: str) -> SandboxError:
        return SandboxError(
            code="not-served",
            place=token,
            problem=f"the sandbox's {self._title} provider does not serve it",
            fix="use the Pulumi CLI and the genuine provider for it",
        )


def _plain(properties: Properties) -> Properties:
    return cast("Properties", reveal(properties))


def _plain_state(state: State) -> State:
    return State(state.id, _plain(state.outputs), _plain(state.inputs))


def _concealed(outputs: Properties, kind: ResourceKind, model: Properties) -> Properties:
    return conceal_keys(conceal_like(outputs, model), kind.secrets)


class Patience:
    """All waits of one provider; one cancellation ends them all, the later ones too."""

    def __init__(self, place: Callable[[], str], what: str = "this service") -> None:
        """Take what it is that is waited for, and its place, asked for only when a wait is ended."""
        self._place = place
        self._what = what
        self._stopped = threading.Event()

    def wait(self, seconds: float) -> None:
        """Wait so long.

        Raises SandboxError `cancelled`, when the run is being stopped.
        """
        if self._stopped.wait(seconds):
            raise SandboxError(
                code="cancelled",
                place=self._place(),
                problem=f"the run is being stopped while {self._what} is waited for",
                fix="run again: what was written so far is recorded",
            )

    def cancel(self) -> None:
        """End every wait with an error."""
        self._stopped.set()
