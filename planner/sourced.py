"""What is read from files, and from where it is known: one strict base for all descriptions, and figures, settings and claims with their source."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from planner.errors import UnitError
from planner.units import parse_quantity, quantity_pattern


class Description(BaseModel):
    """Base of everything that is read from a file: frozen, and strict about keys."""

    # Built when the first file is read, once and as a whole: commands that read none start faster.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


Flag = Annotated[bool, Field(strict=True)]
"""True or false; no number or text stands for it."""


class Figure(Description):
    """One figure with its source; each dimension is a class of its own."""

    dimension: ClassVar[str]
    """The base unit that the value is read into."""

    value: float | None
    """The figure with its unit, such as 3.35 TB/s, or a number in the base unit; null where it is not published."""
    source: Annotated[str, Field(min_length=1)]
    """Where it is written down, or how it is derived."""
    verified: Flag = True
    """False for a figure recalled from its document and not read again."""
    date: str | None = None
    """The day it held, for prices."""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, figure: object) -> object:
        if not isinstance(figure, Mapping) or figure.get("value") is None:
            return figure
        try:
            quantity = parse_quantity(figure["value"], cls.dimension)
        except UnitError as error:
            raise ValueError(f"value {error}") from None
        if quantity == 0:
            raise ValueError(f"value {figure['value']!r} is zero, write null where a figure is not known")
        return {**figure, "value": quantity}

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe the value as it stands in files: with its unit, or as a number."""
        schema = handler(core_schema)
        own = handler.resolve_ref_schema(schema)["properties"]["value"]
        own.pop("anyOf")
        own |= {"type": ["string", "number", "null"], "pattern": NOT_ZERO + quantity_pattern(cls.dimension)}
        own |= {"exclusiveMinimum": 0, "maximum": sys.float_info.max}
        return schema


NOT_ZERO = "^(?=[^eE]*[1-9])"
"""Matches before a number of which a digit is not zero."""


class ComputeRate(Figure):
    """Operations a second."""

    dimension = "FLOP/s"


class DataRate(Figure):
    """Bytes or bits a second."""

    dimension = "B/s"


class Size(Figure):
    """Bytes."""

    dimension = "B"


class Seconds(Figure):
    """A time."""

    dimension = "s"


class Watts(Figure):
    """Electrical power."""

    dimension = "W"


class HourlyPrice(Figure):
    """A price by the hour."""

    dimension = "USD/h"


class Price(Figure):
    """A price."""

    dimension = "USD"


class Claim(Description):
    """A property that a chip has or lacks, with its source."""

    value: Flag
    """True or false."""
    source: Annotated[str, Field(min_length=1)]
    """Where it is written down, or how it was found."""


class Setting(Description):
    """One default of an engine, with its source."""

    value: Annotated[float, Field(strict=True, gt=0)]
    """The number."""
    source: Annotated[str, Field(min_length=1)]
    """Where it is written down."""
    verified: Flag = True
    """False for a figure recalled from its document and not read again."""
