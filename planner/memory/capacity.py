"""How much of a thing fits into so many bytes: pure functions."""

from __future__ import annotations

import math

from planner.numeric import Numeric


def kv_budget_bytes(capacity_bytes: Numeric, *taken_bytes: Numeric, fraction: float = 1.0) -> Numeric:
    """Return what is left for the KV cache: the share of memory that an engine uses, less everything else [B].

    Parameters
    ----------
    capacity_bytes : Numeric
        Memory of a chip, or of a group of chips [B].
    *taken_bytes : Numeric
        Weights, activations, runtime ... [B].
    fraction : float
        The share of the memory that the engine uses.

    Examples
    --------
    >>> kv_budget_bytes(16 * 16e9, 140e9)
    116000000000.0
    """
    return fraction * capacity_bytes - sum(taken_bytes)


def kv_blocks(free_bytes: Numeric, bytes_per_token: float, page_tokens: int) -> Numeric:
    """Return the whole pages that fit into free memory.

    Parameters
    ----------
    free_bytes : Numeric
        Left for the KV cache of a chip [B].
    bytes_per_token : float
        KV cache of one token on that chip [B].
    page_tokens : int
        Tokens of a page.

    Notes
    -----
    Kwon et al. (PagedAttention, arXiv 2309.06180), section 4.

    Examples
    --------
    >>> kv_blocks(3.81 * 2**30, 2 * 32 * 8 * 128 * 2, 16)
    1950.0
    """
    return free_bytes // (bytes_per_token * page_tokens)


def most_tokens(free_bytes: Numeric, bytes_per_token: Numeric) -> Numeric:
    """Return the tokens whose KV cache fits.

    >>> most_tokens(16e9, 2e6)
    8000.0
    """
    return free_bytes / bytes_per_token


def most_sequences(tokens: Numeric, tokens_per_sequence: Numeric) -> Numeric:
    """Return how many sequences of a length the cache of so many tokens holds; a fraction, as engines log it.

    >>> round(most_sequences(1952 * 16, 20000), 4)
    1.5616
    """
    return tokens / tokens_per_sequence


def least_chips(size: float, per_chip: float) -> int:
    """Return the smallest number of chips that have `size` together: bytes, or bytes a second.

    >>> least_chips(112e9, 16e9)
    7
    """
    return math.ceil(size / per_chip)
