"""The embedded deployment engine: speaks the gRPC protocol of Pulumi to a genuine program."""

import os

# The C core of grpc writes to standard error when a peer ends first, as every program and provider here does.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
