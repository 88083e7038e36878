"""What a batch is asked to reach: the compute-bound regime, a share of peak, a time per token, or a rate."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from planner.errors import InputError
from planner.numeric import Numeric, maximum
from planner.step import StepRating
from planner.units import parse_quantity

TARGETS = ("compute-bound", "mfu=0.4", "tpot=30ms", "tokens_per_s=1e5")
"""How each target is written."""


class Target(ABC):
    """A condition on a step."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The target as it is written on the command line."""

    @abstractmethod
    def excess(self, result: StepRating) -> Numeric:
        """Return by how much the step exceeds what is asked; negative where it falls short. nan where times are not known."""

    @abstractmethod
    def shortfall(self, result: StepRating) -> str:
        """Say in numbers how far a step is from the target."""

    @property
    def grows(self) -> bool:
        """Whether a larger batch comes closer to the target."""
        return True


@dataclass(frozen=True, slots=True)
class ComputeBound(Target):
    """The sum of compute times is at least that of memory and that of network."""

    @property
    def text(self) -> str:
        """See `Target.text`."""
        return "compute-bound"

    def excess(self, result: StepRating) -> Numeric:
        """See `Target.excess` [s]."""
        if result.compute_s is None or result.memory_s is None or result.network_s is None:
            return math.nan
        return result.compute_s - maximum(result.memory_s, result.network_s)

    def shortfall(self, result: StepRating) -> str:
        """See `Target.shortfall`."""
        times = [f"{time:.3g} s" if time is not None else "unknown" for time in _three_times(result)]
        return f"compute {times[0]}, memory {times[1]}, network {times[2]}"


def _three_times(result: StepRating) -> tuple[float | None, float | None, float | None]:
    return result.compute_s, result.memory_s, result.network_s  # type: ignore[return-value]  # plain numbers here


@dataclass(frozen=True, slots=True)
class Utilisation(Target):
    """FLOPs of the step, in the time of its lower bound, as a share of the peak (MFU)."""

    share: float

    @property
    def text(self) -> str:
        """See `Target.text`."""
        return f"mfu={self.share:g}"

    def _reached(self, result: StepRating) -> Numeric:
        peak = result.hardware.rate(result.precision.linear.arithmetic).flops_per_s
        if peak is None or result.lower_s is None:
            return math.nan
        return result.flops() / (peak * result.lower_s) * (1 - result.flow.bubble)

    def excess(self, result: StepRating) -> Numeric:
        """See `Target.excess` [share of peak]."""
        return self._reached(result) - self.share

    def shortfall(self, result: StepRating) -> str:
        """See `Target.shortfall`."""
        return f"{self._reached(result):.3g} of peak at most"


@dataclass(frozen=True, slots=True)
class TokenTime(Target):
    """Time from one token of a sequence to its next (TPOT), at the lower bound."""

    seconds: float

    @property
    def text(self) -> str:
        """See `Target.text`."""
        return f"tpot={self.seconds * 1000:g}ms"

    @property
    def grows(self) -> bool:
        """See `Target.grows`: a larger batch takes longer."""
        return False

    def _reached(self, result: StepRating) -> Numeric:
        return math.nan if result.lower_s is None else result.lower_s / (1 - result.flow.bubble)

    def excess(self, result: StepRating) -> Numeric:
        """See `Target.excess` [s]."""
        return self.seconds - self._reached(result)

    def shortfall(self, result: StepRating) -> str:
        """See `Target.shortfall`."""
        return f"{self._reached(result):.3g} s per token at least"


@dataclass(frozen=True, slots=True)
class TokenRate(Target):
    """Tokens a second of the replica, at the lower bound."""

    tokens_per_s: float

    @property
    def text(self) -> str:
        """See `Target.text`."""
        return f"tokens_per_s={self.tokens_per_s:g}"

    def _reached(self, result: StepRating) -> Numeric:
        return math.nan if result.tokens_per_s is None else result.tokens_per_s

    def excess(self, result: StepRating) -> Numeric:
        """See `Target.excess` [token/s]."""
        return self._reached(result) - self.tokens_per_s

    def shortfall(self, result: StepRating) -> str:
        """See `Target.shortfall`."""
        return f"{self._reached(result):,.0f} tokens/s at most"


def parse_target(text: str) -> Target:
    """Return the target that a text stands for.

    Raises
    ------
    InputError
        If the text is none of `TARGETS`' forms, or its number is not positive and finite (a share: at most 1).

    Examples
    --------
    >>> parse_target("tpot=30ms").seconds
    0.03
    """
    name, _, value = text.partition("=")
    try:
        match name:
            case "compute-bound" if not value:
                return ComputeBound()
            case "mfu":
                return Utilisation(_positive(float(value), at_most=1.0))
            case "tpot":
                return TokenTime(_positive(parse_quantity(value, "s")))
            case "tokens_per_s":
                return TokenRate(_positive(float(value)))
    except ValueError:
        pass
    except InputError as error:
        raise InputError(f"--target: {error}") from None
    raise InputError(f"--target: {text!r} is not known, write one of {', '.join(TARGETS)}")


def _positive(value: float, at_most: float = math.inf) -> float:
    if not 0 < value <= at_most or math.isinf(value):
        raise ValueError
    return value
