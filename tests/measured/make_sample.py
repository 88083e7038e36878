"""Makes `data/` from the full tables of measured kernels: every row that beats the floor, the row of each chip and kernel
that comes nearest to it, and a seeded sample of the others.

    cd tests; python -m measured.make_sample FOLDER

`FOLDER` holds `<chip>_<kernel>.csv`. Prints the table of `data/README.md`.
"""

from __future__ import annotations

import csv
import random
import sys
from pathlib import Path

from measured.kernel_floor import DATA, HBM_CHIPS, LARGE_CACHE_CHIPS, OPS, REASONS, Case

SEED = 20250101
SHARE = 0.1
"""Of the rows that do not beat the floor."""


def reason(case: Case) -> str:
    """Return the first reason that holds for a row that beats the floor; empty for a row that does not."""
    if case.ratio >= 1:
        return ""
    return next((name for name, holds in REASONS.items() if holds(case)), "unexplained")


def main(folder: Path) -> None:
    """Write the sample and the counts."""
    draw = random.Random(SEED)  # noqa: S311 - a sample, no secret
    counts: list[tuple[str, str, int, int, float]] = []
    DATA.mkdir(exist_ok=True)
    for kernel in OPS:
        kept: list[dict[str, str]] = []
        for chip in (*HBM_CHIPS, *LARGE_CACHE_CHIPS):
            with (folder / f"{chip}_{kernel}.csv").open(newline="") as file:
                cases = [Case(kernel, row) for row in csv.DictReader(file)]
            rows = [{**case.row, "beats_floor": reason(case)} for case in cases]
            nearest = min(range(len(cases)), key=lambda index, cases=cases: cases[index].ratio)  # type: ignore[misc]
            beaten = sum(bool(row["beats_floor"]) for row in rows)
            kept += [row for i, row in enumerate(rows) if row["beats_floor"] or draw.random() < SHARE or i == nearest]
            counts.append((chip, kernel, len(rows), beaten, min(case.ratio for case in cases)))
        with (DATA / f"{kernel}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, kept[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(kept)
    with (DATA / "population.csv").open("w", newline="") as file:
        writer_ = csv.writer(file, lineterminator="\n")
        writer_.writerow(("chip", "kernel", "rows", "beat_floor", "smallest_ratio"))
        writer_.writerows((*row[:4], f"{row[4]:.3f}") for row in counts)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
