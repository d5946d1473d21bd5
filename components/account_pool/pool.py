"""One pool in one cluster, as the dynamic provider and the command line use it.

Every method runs an operation of the protocol to its end within a time given in seconds; stopping one at any point is
safe, the next run finishes it. Raises the errors of `components.account_pool.errors`.
"""
