"""An emulator for HyperFleet's API, as far as adapters use it: clusters, and adapters' reports on them."""
