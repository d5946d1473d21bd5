"""Support that every test may ask for by name."""

pytest_plugins = ["sandbox.tests.support.cluster"]
