"""Every policy of the pack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import aso
import azure
import cluster_provider
import estate
import gcp
import pool_members
import readable_data
import rights
import secret_objects
import secret_values
import stores
from pulumi_policy import Policy

POLICIES: Final[Sequence[Policy]] = (
    cluster_provider.keeps_claims,
    pool_members.has_a_known_type,
    pool_members.leaves_the_protocol_its_keys,
    pool_members.declares_an_owner_only_for_a_licence,
    pool_members.never_forces,
    pool_members.share_their_namespace_with_no_workload,
    readable_data.holds_no_credential,
    rights.are_never_everything,
    rights.do_not_read_secrets_everywhere,
    rights.are_not_for_everybody,
    rights.are_not_for_whatever_runs,
    secret_objects.have_data_only,
    secret_objects.is_no_lasting_token,
    aso.have_reserved_names_for_their_purpose,
    aso.have_the_keys_of_their_method,
    aso.have_one_method,
    aso.have_no_empty_key,
    aso.have_no_global_key,
    aso.spell_the_annotation,
    aso.name_a_secret,
    aso.find_their_credential,
    azure.trust_an_exact_issuer,
    azure.trust_one_service_account,
    azure.have_one_audience,
    azure.are_not_too_many,
    azure.are_unique,
    azure.say_the_type_of_their_principal,
    azure.make_no_owner,
    azure.stay_within_a_subscription,
    gcp.are_named_after_no_other_cluster,
    gcp.are_labelled,
    gcp.are_replicated_as_declared,
    gcp.are_protected,
    gcp.have_a_marked_payload,
    gcp.are_not_public,
    gcp.give_no_workload_everything,
    stores.say_whom_they_serve,
    stores.anchor_their_regexes,
    estate.are_of_an_allowed_type,
    estate.are_in_an_allowed_region,
    estate.claim_an_offered_type,
    estate.claim_no_more_than_granted,
    estate.say_whose_they_are,
    # Last, so that they see what the remedies above have made.
    secret_values.stay_marked,
    secret_values.stay_marked_everywhere,
)
