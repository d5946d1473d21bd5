"""`credfleet aso`: which credential Azure Service Operator will use."""
