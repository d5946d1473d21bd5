"""The Secret of an account whose credential is elsewhere: in another Secret, or in Secret Manager.

It is labelled as an account that the stack declares; what claims write beside that stays. The path of this
module and the names of its classes are written into the state of stacks; they never move. Import-pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from pulumi import Output

from components.account_pool.member_data import account_data, data_fault, shape_of
from components.dynamic import DynamicResource, Properties
from components.errors import ProjectionError
from components.projection.provider import MarkedArgs, MarkedProvider, Rendered


class MemberSecretProvider(MarkedProvider):
    """Writes the Secret of an account of what its credential says where it is."""

    def render(self, recipe: Properties, contents: Sequence[bytes], places: Sequence[str]) -> Rendered:
        """Return type and values of the Secret; raises ProjectionError for what no account is opened with."""
        del recipe
        [content], [place] = contents, places
        if (fault := data_fault("what it names", shape_of(content))) is not None:
            problem, fix = fault
            raise ProjectionError(code="credential-unfit", place=place, problem=problem, fix=fix)
        return "Opaque", account_data(content)


class MemberSecret(DynamicResource[MarkedArgs]):
    """The Secret of an account, which follows its credential."""

    provider = MemberSecretProvider

    target_name: Output[str]
