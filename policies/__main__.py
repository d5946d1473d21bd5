"""Start the policy pack; what it holds is in `pack`."""

from late_reading import read_late
from pack import POLICIES
from pulumi_policy import EnforcementLevel, PolicyPack

read_late()
PolicyPack("credfleet", policies=[*POLICIES], enforcement_level=EnforcementLevel.MANDATORY)
