"""Shortens the waits of a host of dynamic providers that is started with this folder in PYTHONPATH."""

from components import connection, secret_manager
from components.account_pool import pool, seal
from components.pull_secret import hyperfleet

connection.CONNECT_SECONDS = connection.ANSWER_SECONDS = 0.3  # type: ignore[misc]
connection.FIRST_ANSWER_SECONDS = connection.PATIENCE_SECONDS = 0.3  # type: ignore[misc]
pool._SILENT_SECONDS = pool._OPENING_SECONDS = pool._LONG_SECONDS = 0.2  # type: ignore[misc]
seal._TAKEN_UP_SECONDS = 0.2  # type: ignore[misc]
secret_manager.Patience.__init__.__defaults__ = (0.01, 0.01, 0.3, 0.1)
hyperfleet.HyperFleet.__init__.__defaults__ = (hyperfleet.Contract.V2, 0.1)
