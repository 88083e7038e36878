"""Which positions a query sees: closed forms against counting them one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.op import ChunkedSpan, FullSpan, SelectedSpan, SlidingSpan, Span

SIZES = st.integers(1, 12)
spans = st.one_of(
    st.just(FullSpan()), st.builds(SlidingSpan, SIZES), st.builds(ChunkedSpan, SIZES), st.builds(SelectedSpan, SIZES)
)


def seen_by(span: Span, position: int) -> set[int]:
    """Return the positions that the query at a position sees; positions count from 1."""
    everything = range(1, position + 1)
    match span:
        case SlidingSpan(window=window):
            return {p for p in everything if p > position - window}
        case ChunkedSpan(chunk=chunk):
            return {p for p in everything if (p - 1) // chunk == (position - 1) // chunk}
        case SelectedSpan(most=most):
            return set(list(everything)[:most])  # which ones does not matter to their number
    return set(everything)


@given(span=spans, tokens=st.integers(0, 60))
def test_positions_seen(span: Span, tokens: int) -> None:
    assert span.seen(tokens) == sum(len(seen_by(span, p)) for p in range(1, tokens + 1))


@given(span=spans, context=st.integers(0, 60), new=st.integers(1, 30))
def test_causal_pairs(span: Span, context: int, new: int) -> None:
    queries = range(context + 1, context + new + 1)
    assert span.pairs(new, context, causal=True) == sum(len(seen_by(span, p)) for p in queries)


@given(
    span=spans.filter(lambda span: not isinstance(span, SelectedSpan)),
    context=st.integers(0, 60),
    new=st.integers(1, 30),
)
def test_cached_positions_read(span: Span, context: int, new: int) -> None:
    """What several queries read between them is read once."""
    queries = range(context + 1, context + new + 1)
    read = {p for query in queries for p in seen_by(span, query) if p <= context}
    assert span.read(new, context) == len(read)


@given(most=SIZES, context=st.integers(0, 60), new=st.integers(1, 30))
def test_selected_positions_are_read_for_each_query(most: int, context: int, new: int) -> None:
    """Each query may pick other positions, until all are read."""
    assert SelectedSpan(most).read(new, context) == min(context, most * new)


@given(span=spans, context=st.integers(0, 60), new=st.integers(1, 30))
def test_the_full_mask_counts_each_query_over_the_most_that_any_sees(span: Span, context: int, new: int) -> None:
    match span:
        case SlidingSpan(limit) | ChunkedSpan(limit) | SelectedSpan(limit):
            assert span.pairs(new, context, causal=False) == new * min(context + new, limit)
        case _:
            assert span.pairs(new, context, causal=False) == new * (context + new)


@given(span=spans)
def test_arrays_are_read_point_by_point(span: Span) -> None:
    context, new = np.arange(0.0, 20.0)[:, None], np.arange(1.0, 9.0)[None, :]
    for causal in (True, False):
        together = np.broadcast_to(span.pairs(new, context, causal=causal), (20, 8))
        alone = [[span.pairs(n, c, causal=causal) for n in range(1, 9)] for c in range(20)]
        assert (together == np.array(alone)).all()


@pytest.mark.parametrize(
    ("span", "tokens", "held"),
    [
        (FullSpan(), 9, 9),
        (SlidingSpan(4), 9, 4),
        (SlidingSpan(4), 3, 3),
        (ChunkedSpan(4), 9, 4),
        (SelectedSpan(4), 9, 9),
    ],
)
def test_tokens_held(span: Span, tokens: int, held: int) -> None:
    assert span.held(tokens) == held
