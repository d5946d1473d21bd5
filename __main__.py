"""Declare the fleet of a stack."""

from components.fleet import Fleet
from components.stack_config.stack import Settings

Fleet("fleet", Settings.load()).export()
