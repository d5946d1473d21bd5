"""An emulator for HyperFleet's API, as far as adapters use it: a cluster, and what adapters report of it."""
