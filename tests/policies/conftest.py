"""A stack of the sandbox's engine, for the test that runs the whole pack."""

from sandbox.tests.engine.conftest import crypter, provider, stack

__all__ = ["crypter", "provider", "stack"]
