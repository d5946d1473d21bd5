"""Declare the fleet of a stack."""

from components.fleet import Fleet
from components.settings.stack import Settings

Fleet("fleet", Settings.load()).export()
