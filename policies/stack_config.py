"""The configuration of the judged stack, which the CLI sends to the host, but the host discards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi_policy.policy
from pulumi.runtime.config import get_config_env, get_config_secret_keys_env


@dataclass(slots=True)
class StackConfig:
    """Values by full key, and the keys of secret ones; from the environment until the CLI sends them."""

    values: Mapping[str, str] = field(default_factory=get_config_env, repr=False)
    secret_keys: Sequence[str] = field(default_factory=get_config_secret_keys_env)
    listeners: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    def tell(self, values: Mapping[str, str], secret_keys: Sequence[str]) -> None:
        """Store the configuration sent by the CLI, and notify the listeners."""
        self.values, self.secret_keys = values, secret_keys
        for listener in self.listeners:
            listener()

    def listen(self) -> None:
        """Make the host of this process pass on the configuration that the CLI sends."""
        servicer: Any = vars(pulumi_policy.policy)["_PolicyAnalyzerServicer"]
        configure = servicer.ConfigureStack

        def configure_stack(own: Any, request: Any, context: Any) -> Any:
            self.tell(dict(request.config), [*request.config_secret_keys])
            return configure(own, request, context)

        servicer.ConfigureStack = configure_stack


STACK_CONFIG = StackConfig()
