"""Which positions a query attends to: all before it, a sliding window, its own chunk, or a choice of them.

Positions are counted from 1; the query at position p sees itself and some of the p - 1 positions before it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from planner.numeric import Numeric, minimum


class Span(ABC):
    """The positions that a causal query sees."""

    @abstractmethod
    def held(self, tokens: Numeric) -> Numeric:
        """Return the positions whose keys and values are kept in a sequence of `tokens` tokens."""

    @abstractmethod
    def past(self, context: Numeric) -> Numeric:
        """Return the cached positions that a query right after `context` tokens reads."""

    @abstractmethod
    def seen(self, tokens: Numeric) -> Numeric:
        """Return the positions seen by the queries 1 ... `tokens`, summed over them."""

    def read(self, new_tokens: Numeric, context: Numeric) -> Numeric:  # matters to some spans only
        """Return the cached positions that `new_tokens` queries after `context` tokens read between them."""
        return self.past(context)

    def pairs(self, new_tokens: Numeric, context: Numeric, *, causal: bool) -> Numeric:
        """Return query-key pairs of `new_tokens` queries after `context` cached tokens.

        Parameters
        ----------
        new_tokens, context : Numeric
            Tokens of one sequence, any broadcastable shapes.
        causal : bool
            Count only what the mask lets through, as kernels compute; else every query over all positions (or its window).
        """
        if causal:
            return self.seen(context + new_tokens) - self.seen(context)
        return new_tokens * self.held(context + new_tokens)


@dataclass(frozen=True, slots=True)
class FullSpan(Span):
    """Every position up to the query's own."""

    def held(self, tokens: Numeric) -> Numeric:
        """See `Span.held`."""
        return tokens

    def past(self, context: Numeric) -> Numeric:
        """See `Span.past`."""
        return context

    def seen(self, tokens: Numeric) -> Numeric:
        """See `Span.seen`.

        >>> FullSpan().seen(4)
        10.0
        """
        return tokens * (tokens + 1) / 2


@dataclass(frozen=True, slots=True)
class SlidingSpan(Span):
    """The query's own position and the `window` - 1 before it."""

    window: int

    def held(self, tokens: Numeric) -> Numeric:
        """See `Span.held`."""
        return minimum(tokens, self.window)

    def past(self, context: Numeric) -> Numeric:
        """See `Span.past`."""
        return minimum(context, self.window - 1)

    def seen(self, tokens: Numeric) -> Numeric:
        """See `Span.seen`.

        >>> SlidingSpan(2).seen(4)
        7.0
        """
        ramp = minimum(tokens, self.window)
        return ramp * (ramp + 1) / 2 + self.window * (tokens - ramp)


@dataclass(frozen=True, slots=True)
class ChunkedSpan(Span):
    """Positions from the start of the query's own chunk of `chunk` positions (Llama 4), and the `lookback` chunks before it (Rnj-1)."""

    chunk: int
    lookback: int = 0

    def held(self, tokens: Numeric) -> Numeric:
        """See `Span.held`."""
        return minimum(tokens, self.chunk * (1 + self.lookback))

    def past(self, context: Numeric) -> Numeric:
        """See `Span.past`.

        >>> ChunkedSpan(3, lookback=1).past(4), ChunkedSpan(3, lookback=1).past(7)
        (4, 4)
        """
        own = context % self.chunk
        return own + minimum(context - own, self.chunk * self.lookback)

    def seen(self, tokens: Numeric) -> Numeric:
        """See `Span.seen`.

        >>> ChunkedSpan(3).seen(5)
        9.0
        >>> ChunkedSpan(3, lookback=1).seen(7)
        25.0
        """
        rest = tokens % self.chunk
        whole = (tokens - rest) / self.chunk
        early = minimum(whole, self.lookback)
        before = early * (early - 1) / 2 + self.lookback * (whole - early)
        own = whole * (self.chunk * (self.chunk + 1) / 2) + rest * (rest + 1) / 2
        return own + self.chunk * (self.chunk * before + rest * early)


@dataclass(frozen=True, slots=True)
class SelectedSpan(Span):
    """At most `most` positions, picked anew for each query from all before it (sparse attention with an indexer)."""

    most: int

    def held(self, tokens: Numeric) -> Numeric:
        """See `Span.held`. What is not picked now may be picked by the next query."""
        return tokens

    def past(self, context: Numeric) -> Numeric:
        """See `Span.past`."""
        return minimum(context, self.most)

    def read(self, new_tokens: Numeric, context: Numeric) -> Numeric:
        """See `Span.read`. Each query may pick others."""
        return minimum(context, self.most * new_tokens)

    def seen(self, tokens: Numeric) -> Numeric:
        """See `Span.seen`.

        >>> SelectedSpan(2).seen(4)
        7.0
        """
        ramp = minimum(tokens, self.most)
        return ramp * (ramp + 1) / 2 + self.most * (tokens - ramp)

    def pairs(self, new_tokens: Numeric, context: Numeric, *, causal: bool) -> Numeric:
        """See `Span.pairs`."""
        if causal:
            return Span.pairs(self, new_tokens, context, causal=True)
        return new_tokens * minimum(context + new_tokens, self.most)
