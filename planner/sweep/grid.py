"""Lists and ranges of whole numbers, as they are written on the command line."""

from __future__ import annotations

from planner.errors import InputError
from planner.units import LARGEST_COUNT

MOST = 10**7
"""Numbers that one option may stand for."""

FORMS = "1,2,4 or 1:1000 or 1:1000:8 (start:stop:step) or 1:1024:x2 (doubling)"


def parse_numbers(text: str, name: str, least: int = 1) -> tuple[int, ...]:
    """Return the numbers that a text stands for: a list of numbers and ranges. The stop is included when it is on the grid.

    Parameters
    ----------
    text : str
        ``1,2,4``, ``1:1000``, ``1:1000:8`` (start:stop:step), ``1:1024:x2`` (each twice the one before), or several, with commas.
    name : str
        The option, for messages.
    least : int
        The smallest number allowed.

    Raises
    ------
    InputError
        If the text has another form, runs backwards, repeats a number, or stands for too many.

    Examples
    --------
    >>> parse_numbers("1:20:8", "batch"), parse_numbers("1:10:x2", "batch"), parse_numbers("3,5:6", "batch")
    ((1, 9, 17), (1, 2, 4, 8), (3, 5, 6))
    """
    numbers: list[int] = []
    for part in text.split(","):
        numbers += _range(part.strip(), name, least)
        if len(numbers) > MOST:
            raise InputError(f"--{name}: {text!r} stands for more than {MOST:,} numbers")
    if len(set(numbers)) != len(numbers):
        raise InputError(f"--{name}: {text!r} has a number twice, name each once")
    return tuple(numbers)


def _range(part: str, name: str, least: int) -> list[int]:
    start_text, *rest = part.split(":")
    if len(rest) > 2:  # start:stop:step
        raise InputError(f"--{name}: {part!r} is no range, write {FORMS}")
    start = _whole(start_text, part, name, least)
    if not rest:
        return [start]
    stop = _whole(rest[0], part, name, least)
    if stop < start:
        raise InputError(f"--{name}: {part!r} runs backwards, write {stop}:{start}")
    step_text = rest[1] if len(rest) > 1 else "1"
    if step_text.startswith("x"):
        return _geometric(start, stop, _whole(step_text[1:], part, name, 2), part, name)
    step = _whole(step_text, part, name, 1)
    if (stop - start) // step >= MOST:
        raise InputError(f"--{name}: {part!r} stands for more than {MOST:,} numbers")
    return list(range(start, stop + 1, step))


def _geometric(start: int, stop: int, factor: int, part: str, name: str) -> list[int]:
    if start == 0:
        raise InputError(f"--{name}: {part!r} never leaves 0, start from 1 or more")
    numbers = [start]
    while numbers[-1] * factor <= stop:
        numbers.append(numbers[-1] * factor)
    return numbers


def _whole(text: str, part: str, name: str, least: int) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(LARGEST_COUNT)):
        raise InputError(f"--{name}: {part!r} is no list or range of whole numbers, write {FORMS}")
    number = int(text)
    if not least <= number <= LARGEST_COUNT:
        raise InputError(f"--{name}: {number} is not from {least} to {LARGEST_COUNT}")
    return number
