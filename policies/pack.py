"""Every policy of the pack in evaluation order: by subject, then as in its file.

Importing it makes the host of this process read lazily, without which it hides which values are secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import aso
import azure
import cluster_provider
import environments
import gcp
import pool_members
import readable_data
import rights
import secret_objects
import secret_values
import stores
from late_reading import read_late
from pulumi_policy import Policy
from stack_config import STACK_CONFIG

SUBJECTS: Final = (
    cluster_provider,
    pool_members,
    readable_data,
    rights,
    secret_objects,
    aso,
    azure,
    gcp,
    stores,
    environments,
    secret_values,
)

POLICIES: Final[Sequence[Policy]] = tuple(
    policy for subject in SUBJECTS for policy in vars(subject).values() if isinstance(policy, Policy)
)

read_late()
STACK_CONFIG.listen()
