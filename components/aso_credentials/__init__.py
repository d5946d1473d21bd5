"""ASO credentials: what Azure Service Operator v2 takes for a resource, and what it makes of it."""
