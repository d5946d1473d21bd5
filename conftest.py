"""Support that every test may ask for by name; the API server is what `credfleet sandbox build` built."""

import os

from hypothesis import settings
from pulumi_sandbox.services.build import CACHE_VARIABLE, cache_folder

pytest_plugins = ["sandbox.tests.support.cluster"]

os.environ.setdefault(CACHE_VARIABLE, str(cache_folder("credfleet")))
settings.register_profile("prove", max_examples=10_000)
