"""A chip as its datasheet describes it: peaks, memory, links, power and price, each figure with its source."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from planner.sourced import Claim, ComputeRate, DataRate, Description, Figure, HourlyPrice, Price, Seconds, Size, Watts

# What runs where the chip lacks a format: the narrowest wider one that it has. 4-bit and 8-bit arithmetic falls to 16 bits, not to
# another 8-bit format: that is what the kernels do that serve such weights on older chips.
WIDER: dict[str, tuple[str, ...]] = {
    "nvfp4": ("bf16", "fp16", "fp32"),
    "mxfp4": ("bf16", "fp16", "fp32"),
    "int4": ("bf16", "fp16", "fp32"),
    "fp6": ("bf16", "fp16", "fp32"),
    "fp8": ("bf16", "fp16", "fp32"),
    "int8": ("bf16", "fp16", "fp32"),
    "bf16": ("fp16", "fp32"),
    "fp16": ("fp32",),
    "tf32": ("fp32",),
    "fp32": (),
}


class Peaks(Description):
    """Dense arithmetic rates; a multiply-add counts as two, and sums are kept in fp32 (int32)."""

    fp32: ComputeRate | None = None
    """Without tensor cores."""
    tf32: ComputeRate | None = None
    bf16: ComputeRate | None = None
    fp16: ComputeRate | None = None
    fp16_accumulate: ComputeRate | None = None
    """fp16 with fp16 sums: for information, never planned with."""
    fp8: ComputeRate | None = None
    int8: ComputeRate | None = None
    fp6: ComputeRate | None = None
    nvfp4: ComputeRate | None = None
    mxfp4: ComputeRate | None = None
    int4: ComputeRate | None = None


class Memory(Description):
    """The memory that weights and KV cache live in."""

    kind: str | None = None
    """HBM3, GDDR7, LPDDR5X ..."""
    capacity: Size
    """As built."""
    usable: Size | None = None
    """What the device reports or the runtime can use, where that is known to be less."""
    bandwidth: DataRate
    """Reading, all channels together."""

    @property
    def plannable_bytes(self) -> float | None:
        """Memory to plan on: the usable size where it is known [B]."""
        return self.usable.value if self.usable else self.capacity.value


class Cache(Description):
    """The last level of on-chip memory."""

    name: str | None = None
    capacity: Size


Topology = Literal["switch", "full_mesh", "ring", "torus_2d", "torus_3d", "hybrid_mesh", "bridge", "pcie", "socket"]


class ScaleUp(Description):
    """The fast links that join chips into one domain."""

    name: str
    topology: Topology
    chips: Annotated[int, Field(strict=True, ge=2)]
    """Chips in a domain."""
    one_way: DataRate
    """All links of a chip together, one direction."""
    one_way_pair: DataRate | None = None
    """Between one pair of chips, one direction."""
    latency: Seconds | None = None
    """One step of a collective, from chip to neighbour; that of the topology (links/default-latencies.yaml) where not given."""
    in_network_reduction: Claim | None = None
    """The switch adds up what chips send to it."""
    sides: tuple[Annotated[int, Field(strict=True, ge=2)], ...] | None = None
    """Chips along each axis of a torus; as equal as possible where not given."""
    wrap_multiple: Annotated[int, Field(strict=True, ge=2)] | None = None
    """A slice of a torus wraps around where all its sides are multiples of this; where not given, along whole axes only."""


class Link(Description):
    """A link that leaves the domain: to other hosts, or to the host's own memory."""

    name: str | None = None
    one_way: DataRate
    """One direction, for one chip."""
    latency: Seconds | None = None
    """One step of a collective; the default of scale-out networks (links/default-latencies.yaml) where not given."""


class Links(Description):
    """Links by reach."""

    scale_up: ScaleUp | None = None
    scale_out: Link | None = None
    host: Link | None = None


class Latencies(Description):
    """Latency of one step of a collective, by topology: for chips whose file has none."""

    switch: Seconds | None = None
    full_mesh: Seconds | None = None
    ring: Seconds | None = None
    torus_2d: Seconds | None = None
    torus_3d: Seconds | None = None
    hybrid_mesh: Seconds | None = None
    bridge: Seconds | None = None
    pcie: Seconds | None = None
    socket: Seconds | None = None
    scale_out: Seconds | None = None
    """Between domains."""


class Power(Description):
    """Electrical power."""

    tdp: Watts
    """The vendor's maximum for one chip."""


class Prices(Description):
    """Indicative prices of one chip."""

    hourly: HourlyPrice | None = None
    """Renting, by the hour."""
    list: Price | None = None
    """Buying."""


@dataclass(frozen=True, slots=True)
class Rate:
    """The rate that arithmetic in some format runs at on a chip.

    Attributes
    ----------
    asked, used : str
        The format asked for, and the one that the arithmetic runs in; `used` is empty where there is none.
    flops_per_s : float or None
        Dense peak of `used` [FLOP/s]; None where the chip has no rate for it.
    note : str
        What to tell the user, empty where the chip has the format.
    """

    asked: str
    used: str
    flops_per_s: float | None
    note: str = ""


class Hardware(Description):
    """One kind of chip."""

    name: Annotated[str, Field(min_length=1)]
    vendor: str
    kind: Literal["gpu", "tpu", "asic", "soc", "cpu"]
    form_factor: str | None = None
    year: Annotated[int, Field(strict=True, ge=1900, le=2200)] | None = None
    peak: Peaks
    memory: Memory
    cache: Cache | None = None
    links: Links = Links.model_construct()
    power: Power | None = None
    price: Prices | None = None
    chips_per_host: Annotated[int, Field(strict=True, ge=1)] | None = None
    devices_per_chip: Annotated[int, Field(strict=True, ge=1)] | None = None
    """Devices that software sees in one package, where there is more than one."""
    notes: tuple[str, ...] = ()

    def rate(self, arithmetic: str) -> Rate:
        """Return the peak for arithmetic in a format, or in the narrowest wider format that the chip has.

        Parameters
        ----------
        arithmetic : str
            A key of ``peak``.

        Returns
        -------
        Rate
            With the format that is really used, and a note where it is another one.
        """
        tried = (arithmetic, *WIDER[arithmetic])
        for used in tried:
            figure: Figure | None = getattr(self.peak, used)
            if figure is not None and figure.value is not None:
                note = "" if used == arithmetic else f"{self.name} has no {arithmetic} rate: arithmetic runs in {used}"
                return Rate(arithmetic, used, figure.value, note)
        return Rate(arithmetic, "", None, f"{self.name} has no rate for {' or '.join(tried)}: nothing can be said")

    def with_latencies(self, defaults: Latencies) -> Hardware:
        """Return the chip with the latency of its topology where its file gives none."""
        links = self.links
        changes: dict[str, ScaleUp | Link] = {}
        if links.scale_up is not None and links.scale_up.latency is None:
            latency = getattr(defaults, links.scale_up.topology)
            changes["scale_up"] = links.scale_up.model_copy(update={"latency": latency})
        if links.scale_out is not None and links.scale_out.latency is None:
            changes["scale_out"] = links.scale_out.model_copy(update={"latency": defaults.scale_out})
        return self.model_copy(update={"links": links.model_copy(update=changes)}) if changes else self

    def recalled(self, formats: Collection[str], *, linked: bool) -> tuple[str, ...]:
        """Return the paths of the figures that an answer rests on and that were recalled, not read again.

        Parameters
        ----------
        formats : collection of str
            The peaks that the arithmetic runs at: keys of ``peak``.
        linked : bool
            Whether links between chips are used.
        """
        used = {f"peak.{name}" for name in formats}
        parts = ("memory.", *(("links.scale_up.", "links.scale_out.") if linked else ()))
        figures = ((path, figure) for path, figure in self.figures() if path in used or path.startswith(parts))
        return tuple(path for path, figure in figures if figure.value is not None and not figure.verified)

    def figures(self) -> list[tuple[str, Figure]]:
        """Return every figure with its path, in the order of the file."""
        return list(_figures(self, ""))


def _figures(part: BaseModel, prefix: str) -> list[tuple[str, Figure]]:
    found: list[tuple[str, Figure]] = []
    for name in type(part).model_fields:
        value, path = getattr(part, name), f"{prefix}{name}"
        if isinstance(value, Figure):
            found.append((path, value))
        elif isinstance(value, BaseModel):
            found += _figures(value, f"{path}.")
    return found
