"""The variables that open a state: what runs for a stack inherits all others."""

from typing import Final

PASSPHRASES: Final = ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE")
