"""Property values of every kind, for hypothesis."""

from hypothesis import strategies as st
from pulumi_sandbox.protocol.values import (
    UNKNOWN,
    Properties,
    Secret,
    Value,
)

_names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
_leaves: st.SearchStrategy[Value] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer()),
    st.text(max_size=8),
    st.just(UNKNOWN),
)


def _deeper(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    lists: st.SearchStrategy[Value] = st.lists(inner, max_size=3)
    objects: st.SearchStrategy[Value] = st.dictionaries(_names, inner, max_size=3)
    secrets: st.SearchStrategy[Value] = st.builds(Secret, inner)
    return st.one_of(lists, objects, secrets)


values: st.SearchStrategy[Value] = st.recursive(_leaves, _deeper, max_leaves=12)
properties: st.SearchStrategy[Properties] = st.dictionaries(_names, values, max_size=4)
