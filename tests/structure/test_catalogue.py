"""Every shipped file loads, is named as it should be, and its quantities are read as pint reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pint
import pytest
import yaml

from planner import catalogue
from planner.scenario import choose_precision
from planner.units import parse_quantity

MODELS = catalogue.names("models")
HARDWARE = catalogue.names("hardware")

UNITS = pint.UnitRegistry()
UNITS.define("FLOP = []")
UNITS.define("OP = FLOP")
UNITS.define("USD = [money]")
# pint's B is the bel: capacities are written with its full name here.
SPELLING = {"B": "byte", "bit": "bit"}


def by_pint(text: str, unit: str) -> float:
    """Read a quantity with pint, in the base unit that the planner uses."""
    spelled = re.sub(r"\b([kMGTPE]i?)?B\b", lambda match: f"{match[1] or ''}B_".replace("B_", "byte"), text)
    spelled = re.sub(r"\b(Ki|Mi|Gi|Ti)byte", lambda match: f"{match[1]}B", spelled)
    number, rest = re.fullmatch(r"\s*([-+0-9.eE]+)\s*(.*)", spelled).groups()  # type: ignore[union-attr]
    wanted = unit.replace("B", "byte").replace("USD", "USD")
    return float(
        UNITS.Quantity(float(number), rest.replace("USD/h", "USD/hour")).to(wanted.replace("/h", "/hour")).magnitude
    )


def figures(data: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the figures of a raw hardware file with their paths."""
    if isinstance(data, dict):
        if "value" in data and "source" in data:
            yield path, data["value"]
        else:
            for key, value in data.items():
                yield from figures(value, f"{path}.{key}".lstrip("."))


DIMENSIONS = {
    "peak": "FLOP/s",
    "capacity": "B",
    "usable": "B",
    "bandwidth": "B/s",
    "one_way": "B/s",
    "one_way_pair": "B/s",
    "latency": "s",
    "tdp": "W",
    "hourly": "USD/h",
    "list": "USD",
}


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("3.35 TB/s", "B/s", 3.35e12),
        ("80 GiB", "B", 80 * 2**30),
        ("50 MB", "B", 50e6),
        ("1979 TOP/s", "FLOP/s", 1.979e15),
    ],
)
def test_the_reference_itself(text: str, unit: str, value: float) -> None:
    assert by_pint(text, unit) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("name", HARDWARE)
def test_every_quantity_is_read_as_pint_reads_it(name: str) -> None:
    data = yaml.safe_load((catalogue.data_folder("hardware") / f"{name}.yaml").read_text(encoding="utf-8"))
    loaded = {path: figure.value for path, figure in catalogue.load_hardware(name).figures()}
    raw = dict(figures(data))
    claims = {path for path, value in raw.items() if isinstance(value, bool)}
    raw = {path: value for path, value in raw.items() if path not in claims}
    supplied = {path for path in loaded if path.endswith(".latency")}  # from links/latency.yaml where the file has none
    assert raw.keys() <= loaded.keys()
    assert loaded.keys() - supplied <= raw.keys()
    for path, value in raw.items():
        parts = path.split(".")
        unit = DIMENSIONS.get(parts[0]) or DIMENSIONS[parts[-1]]
        if value is None:
            assert loaded[path] is None
            continue
        assert isinstance(value, str), f"{path}: a figure is written with its unit"
        assert loaded[path] == pytest.approx(by_pint(value, unit), rel=1e-12)
        assert parse_quantity(value, unit) == loaded[path]


@pytest.mark.parametrize("name", HARDWARE)
def test_every_figure_has_a_source_and_a_price_its_day(name: str) -> None:
    chip = catalogue.load_hardware(name)
    assert all(figure.source.strip() for _, figure in chip.figures())
    if chip.price and chip.price.hourly and chip.price.hourly.value is not None:
        assert chip.price.hourly.date, "a price has the day that it held, or says that this is not known"


@pytest.mark.parametrize("name", MODELS)
def test_every_model_counts_what_is_published(name: str) -> None:
    model = catalogue.load_model(name)
    assert model.source
    assert choose_precision(model)
    if model.published_parameters is not None:
        assert model.accounts_for(model.published_parameters)


def test_the_catalogue_is_large_enough() -> None:
    assert len(HARDWARE) >= 12
    assert {catalogue.load_hardware(name).vendor for name in HARDWARE} >= {"NVIDIA", "AMD", "Google"}


@pytest.mark.parametrize("kind", ["models", "hardware"])
def test_names_are_plain(kind: str) -> None:
    folder: Path = catalogue.data_folder(kind)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9.-]*", path.stem) for path in folder.glob("*.yaml"))
    assert {path.name for path in folder.iterdir() if path.suffix != ".yaml"} <= {"links", "engines"}
