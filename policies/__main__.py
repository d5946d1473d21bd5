"""Start the policy pack; what it holds is in `pack`."""

from pack import POLICIES
from pulumi_policy import EnforcementLevel, PolicyPack

PolicyPack("credfleet", policies=[*POLICIES], enforcement_level=EnforcementLevel.MANDATORY)
