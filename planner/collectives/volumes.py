"""What a chip sends in a collective, by algorithm, and how long that takes: pure functions.

Sizes are those of `planner.op.Collective`. Bandwidths are one direction, of one chip.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.numeric import Numeric


def gather_bytes(size_bytes: Numeric, chips: float) -> Numeric:
    """Return what a chip sends in a ring all-gather or reduce-scatter, or to the others in an all-to-all [B].

    Parameters
    ----------
    size_bytes : Numeric
        The gathered result, the buffer before it is scattered, or what one chip sends with its own share included [B].
    chips : float
        n; infinite for the rule of thumb that leaves out 1/n.

    Notes
    -----
    ``(n - 1) / n V`` (Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005, sections 4.1 and 4.3).

    Examples
    --------
    >>> gather_bytes(8.0, 4)
    6.0
    """
    return size_bytes * (1 - 1 / chips)


def ring_bytes(size_bytes: Numeric, chips: float) -> Numeric:
    """Return what a chip sends in a ring all-reduce: a reduce-scatter and an all-gather, ``2 (n - 1) / n V`` [B].

    Notes
    -----
    Thakur, Rabenseifner and Gropp (2005), section 4.5. Also what two direct rounds take, and what no all-reduce without reduction in
    the network can go below.

    Examples
    --------
    >>> ring_bytes(8.0, 2)
    8.0
    """
    return 2 * gather_bytes(size_bytes, chips)


def one_shot_bytes(size_bytes: Numeric, chips: float) -> Numeric:
    """Return what a chip sends where each sends its whole buffer to all others at once, ``(n - 1) V`` [B].

    >>> one_shot_bytes(8.0, 4)
    24.0
    """
    return size_bytes * (chips - 1)


def tree_bytes(size_bytes: Numeric, chips: float) -> Numeric:  # the signature of all volumes
    """Return what a chip sends in an all-reduce along a double binary tree, ``2 V`` [B].

    Notes
    -----
    Half of the data takes each of two trees in which every chip is a leaf of the one and an inner node of the other (Sanders, Speck
    and Träff, Parallel Computing 35, 2009): up V/2 twice, and down V/2 to two children.
    """
    return 2 * size_bytes


def in_switch_bytes(size_bytes: Numeric, chips: float) -> Numeric:  # the signature of all volumes
    """Return what a chip sends where the switch adds up, ``V`` [B]."""
    return 1 * size_bytes


VOLUMES: dict[str, Callable[[Numeric, float], Numeric]] = {
    "ring": ring_bytes,
    "tree": tree_bytes,
    "one_shot": one_shot_bytes,
    "in_switch": in_switch_bytes,
    "reduce_scatter": gather_bytes,
}
"""What a chip sends to add up partial sums, by algorithm; after a reduce-scatter the result stays in pieces."""


def transfer_seconds(sent_bytes: Numeric, bytes_per_s: float, *, steps: Numeric = 0, latency_s: float = 0.0) -> Numeric:
    """Return the time of a collective in the alpha-beta model, ``k alpha + N beta`` [s].

    Parameters
    ----------
    sent_bytes : Numeric
        What a chip sends [B].
    bytes_per_s : float
        One direction, of the links that are used at once [B/s].
    steps : Numeric
        Steps that wait for each other.
    latency_s : float
        Of one step [s].

    Notes
    -----
    Hockney (Parallel Computing 20, 1994).

    Examples
    --------
    An all-gather over four chips in a row, each link 45 GB/s.

    >>> round(transfer_seconds(gather_bytes(2 * 2048 * 8192, 4), 45e9), 10)
    0.0005592405
    """
    return steps * latency_s + sent_bytes / bytes_per_s


def latency_bound_bytes(bytes_per_s: float, latency_s: float, steps: float = 1) -> float:
    """Return the message below which latency takes longer than bandwidth [B].

    >>> latency_bound_bytes(45e9, 1e-6)
    45000.0
    """
    return bytes_per_s * latency_s * steps


def two_way_hops(chips: int) -> int:
    """Return the steps to reach the farthest chip of a ring in both directions.

    >>> two_way_hops(4)
    2
    """
    return chips // 2


def collective_bandwidth(bytes_per_s: float, chips: float) -> float:
    """Return the size of an all-gather over its time, where only latency is left out: ``W n / (n - 1)`` [B/s].

    Parameters
    ----------
    bytes_per_s : float
        Of one participant, one direction; a domain's where domains are the participants [B/s].
    chips : float
        Participants.

    Examples
    --------
    >>> collective_bandwidth(400e9, 2)
    800000000000.0
    """
    return bytes_per_s * chips / (chips - 1)


def expert_exchange_bytes(tokens: Numeric, paths: Numeric, width: int, bytes_per_element: float) -> Numeric:
    """Return what a chip sends to dispatch its tokens to their experts, or to combine the results [B].

    Parameters
    ----------
    tokens : Numeric
        Tokens of the chip.
    paths : Numeric
        Other chips that each token goes to.
    width : int
        Elements of a token.
    bytes_per_element : float
        Of the format sent: often 8 bits to dispatch and 16 to combine [B].

    Examples
    --------
    >>> expert_exchange_bytes(32, 9, 7000, 1)
    2016000
    """
    return tokens * paths * width * bytes_per_element
