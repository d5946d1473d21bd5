"""The sandbox's Azure provider: groups, identities, federation and roles, as azure-native 3.29 does it."""
