"""Secret of an account with an external reference: another Secret, or Secret Manager.

It has the labels of a declared account; what claims write in addition stays. The path of this module and its
class names are stored in the state of stacks and must not change. Import-pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from pulumi import Output

from components.account_pool.member_data import account_data, data_fault, shape_of
from components.dynamic import DynamicResource, Properties
from components.errors import ProjectionError
from components.projection.provider import MarkedArgs, MarkedProvider, Rendered


class MemberSecretProvider(MarkedProvider):
    """Writes the Secret of an account from its external reference."""

    def render(self, recipe: Properties, contents: Sequence[bytes], places: Sequence[str]) -> Rendered:
        """Return type and values of the Secret; raises ProjectionError for an invalid credential."""
        del recipe
        [content], [place] = contents, places
        if (fault := data_fault("what it names", shape_of(content))) is not None:
            problem, fix = fault
            raise ProjectionError(code="credential-unfit", place=place, problem=problem, fix=fix)
        return "Opaque", account_data(content)


class MemberSecret(DynamicResource[MarkedArgs]):
    """Secret of an account that follows its credential."""

    provider = MemberSecretProvider

    target_name: Output[str]
