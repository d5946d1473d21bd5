"""The embedded deployment engine: speaks the gRPC protocol of Pulumi to a genuine program."""
