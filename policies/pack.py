"""Every policy of the pack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import cluster_provider
import pool_members
import readable_data
import rights
import secret_objects
from pulumi_policy import Policy

POLICIES: Final[Sequence[Policy]] = (
    cluster_provider.keeps_claims,
    pool_members.has_a_known_type,
    pool_members.leaves_the_protocol_its_keys,
    pool_members.declares_an_owner_only_for_a_licence,
    pool_members.never_forces,
    readable_data.holds_no_credential,
    rights.are_never_everything,
    rights.do_not_read_secrets_everywhere,
    rights.are_not_for_everybody,
    secret_objects.have_data_only,
)
