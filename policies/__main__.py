"""Start the policy pack; its policies are listed in `pack`."""

from pack import POLICIES
from pulumi_policy import EnforcementLevel, PolicyPack

PolicyPack("credfleet", policies=[*POLICIES], enforcement_level=EnforcementLevel.MANDATORY)
