"""The components for programs in other languages: a schema of them, and the provider that constructs them."""
