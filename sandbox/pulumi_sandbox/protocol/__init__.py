"""What engine, providers and programs share: property values and their paths, URNs, the wire format.

Nothing here knows of a provider or of a service.
"""

import os

# The C core of grpc writes to standard error when a peer ends first, as every program and provider here does.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
