"""Writes a sweep to CSV or Parquet block by block: memory stays flat, and a sweep that was stopped goes on where it was.

Blocks go to numbered part files in a folder beside the result. When all are there they become one file, and the folder goes.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner import __version__
from planner.errors import InputError
from planner.sweep.points import Sweep

if TYPE_CHECKING:
    import pandas as pd

PART_POINTS = 1 << 18
"""Points of a part file: a stopped sweep loses at most so many."""


def _write_csv(frame: pd.DataFrame, path: Path) -> None:
    frame.to_csv(path, index=False)


def _write_parquet(frame: pd.DataFrame, path: Path) -> None:
    frame.to_parquet(path, index=False, compression="zstd")


def _join_csv(parts: list[Path], whole: Path) -> None:
    with whole.open("wb") as target:
        for index, part in enumerate(parts):
            with part.open("rb") as source:
                header = source.readline()
                if index == 0:
                    target.write(header)
                shutil.copyfileobj(source, target)


def _join_parquet(parts: list[Path], whole: Path) -> None:
    import pyarrow.parquet as pq  # an optional extra

    with pq.ParquetWriter(whole, pq.read_schema(parts[0]), compression="zstd") as writer:
        for part in parts:
            writer.write_table(pq.read_table(part))


WRITERS: dict[str, tuple[Callable[[Any, Path], None], Callable[[list[Path], Path], None]]] = {
    ".csv": (_write_csv, _join_csv),
    ".parquet": (_write_parquet, _join_parquet),
}


def check_output(path: Path) -> None:
    """Refuse an output that cannot be written, before anything is computed.

    Raises
    ------
    InputError
        If the ending is neither .csv nor .parquet, the library for Parquet is missing, or the path is a folder.
    """
    if path.suffix not in WRITERS:
        raise InputError(f"--output: {path.name!r} ends in neither .csv nor .parquet")
    if path.is_dir():
        raise InputError(f"--output: {path} is a folder, name a file")
    if path.suffix == ".parquet":
        try:
            import pyarrow.parquet  # noqa: F401 - an optional extra
        except ImportError:
            raise InputError(
                "--output: writing Parquet needs pyarrow, install it with: pip install 'roofline-planner[parquet]'"
            ) from None


def write_sweep(sweep: Sweep, path: Path, request: str) -> Iterator[int]:
    """Write every point of a sweep to a file, and yield the points done after each part.

    Parameters
    ----------
    sweep : Sweep
        What is asked.
    path : Path
        A file that ends in .csv or .parquet. It is there when all of it is.
    request : str
        What was asked, in words that are equal when the sweep is: parts of another request are thrown away.

    Raises
    ------
    InputError
        See `check_output`; or if a file cannot be written.
    """
    check_output(path)
    write, join = WRITERS[path.suffix]
    folder = path.with_name(f"{path.name}.parts")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _prepare(folder, request)
        parts, done = [], 0
        for index, block in enumerate(sweep.blocks(PART_POINTS)):
            part = folder / f"{index:06d}{path.suffix}"
            if not part.is_file():
                _write_whole(part, partial(write, _frame(block)))
            parts.append(part)
            done += block.points
            yield done
        _write_whole(path, partial(join, parts))
        shutil.rmtree(folder)
    except OSError as error:
        raise InputError(f"--output: {path} cannot be written: {error.strerror or error}") from None


def _frame(part: Any) -> pd.DataFrame:
    """Evaluate a part in blocks that fit the cache, and put them together."""
    import pandas as pd  # only where tables leave the package

    inner = Sweep(
        cases=(part.case,),
        phase=part.sweep.phase,
        batches=tuple(part.batches),
        contexts=tuple(part.contexts),
        new_tokens=part.sweep.new_tokens,
        engine=part.sweep.engine,
    )
    frames = [block.frame() for block in inner.blocks()]
    return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)


def _prepare(folder: Path, request: str) -> None:
    """Keep the parts of an equal request that was stopped; begin anew otherwise."""
    note = folder / "request.json"
    wanted = {"planner": __version__, "request": hashlib.sha256(request.encode()).hexdigest()}
    if note.is_file() and json.loads(note.read_text() or "null") == wanted:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    note.write_text(json.dumps(wanted))


def _write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` write a file whole or not at all."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        write(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
