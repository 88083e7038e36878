"""A progress bar on stderr, for work that takes long enough to notice."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

WORTH_A_BAR = 20
"""Fewer steps than this are over before anyone looks."""


def tracked(items: Iterable[T], count: int, title: str) -> Iterator[T]:
    """Yield the items, with a bar on stderr where a person watches."""
    if count < WORTH_A_BAR or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console  # only for people
    from rich.progress import track

    yield from track(items, title, total=count, console=Console(stderr=True), transient=True)


def advancing(done: Iterable[int], total: int, title: str) -> Iterator[int]:
    """Yield how much is done, with a bar on stderr where a person watches."""
    if not sys.stderr.isatty():
        yield from done
        return
    from rich.console import Console  # only for people
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        for amount in done:
            progress.update(task, completed=amount)
            yield amount
