"""Azure Resource Manager for resource groups, managed identities, their federation, and role assignments."""
