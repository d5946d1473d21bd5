"""The configuration of the stack that is judged: the CLI tells it to the host, which drops it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi_policy.policy
from pulumi.runtime.config import get_config_env, get_config_secret_keys_env


@dataclass(slots=True)
class StackConfig:
    """Texts by full key, and the keys of those that are secret; of the environment until the CLI tells."""

    values: Mapping[str, str] = field(default_factory=get_config_env, repr=False)
    secret_keys: Sequence[str] = field(default_factory=get_config_secret_keys_env)
    listeners: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    def tell(self, values: Mapping[str, str], secret_keys: Sequence[str]) -> None:
        """Take what the CLI tells, and let what was made of it be made again."""
        self.values, self.secret_keys = values, secret_keys
        for listener in self.listeners:
            listener()

    def listen(self) -> None:
        """Have the host of this process hand on what the CLI tells."""
        servicer: Any = vars(pulumi_policy.policy)["_PolicyAnalyzerServicer"]
        configure = servicer.ConfigureStack

        def configure_stack(own: Any, request: Any, context: Any) -> Any:
            self.tell(dict(request.config), [*request.config_secret_keys])
            return configure(own, request, context)

        servicer.ConfigureStack = configure_stack


STACK_CONFIG = StackConfig()
