"""Declare the fleet of a stack."""

import gc

gc.disable()  # nothing of what is imported is garbage

import pulumi

from components.fleet import Fleet
from components.sdk_costs import save_costs, settle
from components.stack_config.stack import Settings

save_costs()
Fleet("fleet", Settings.load()).export()
pulumi.run(settle)
