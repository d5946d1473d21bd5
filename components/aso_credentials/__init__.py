"""ASO credentials: the credential that Azure Service Operator v2 uses for a resource, and how."""
