"""What engine, providers and programs share: property values and their paths, URNs, the wire format.

It is independent of any provider or service.
"""

import os

# The C core of grpc writes to standard error when a peer ends first, as every program and provider here does.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
