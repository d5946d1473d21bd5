"""Shortens the waits of a host of dynamic providers that is started with this folder in PYTHONPATH."""

from components import http_answers

http_answers.FIRST_ANSWER_SECONDS = http_answers.PATIENCE_SECONDS = 0.3  # type: ignore[misc]

from components import connection, secret_manager  # noqa: E402 - they take these by name
from components.account_pool import provider, seal  # noqa: E402
from components.account_pool.core import pool  # noqa: E402
from components.pull_secret import hyperfleet  # noqa: E402

connection.CONNECT_SECONDS = connection.ANSWER_SECONDS = 0.3  # type: ignore[misc]
pool._OPENING_SECONDS = pool._LONG_SECONDS = 0.2  # type: ignore[misc]
seal._TAKEN_UP_SECONDS = provider._FOLLOWED_SECONDS = 0.2  # type: ignore[misc]
secret_manager.Patience.__init__.__defaults__ = (0.01, 0.01, 0.3, 0.1)
hyperfleet.HyperFleet.__init__.__defaults__ = (hyperfleet.Contract.V2, 0.1)
