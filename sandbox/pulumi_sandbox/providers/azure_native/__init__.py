"""The sandbox's Azure provider: groups, identities, federation and roles, like azure-native 3.29."""
