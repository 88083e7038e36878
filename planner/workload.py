"""What a forward step is asked to do."""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from planner.errors import InputError
from planner.numeric import Numeric, anywhere, is_finite


class Phase(StrEnum):
    """Prefill fills the cache with a prompt or a chunk of it; decode adds a token to each sequence."""

    PREFILL = "prefill"
    DECODE = "decode"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One forward step of a batch of equal sequences.

    Attributes
    ----------
    phase : Phase
        Prefill or decode.
    batch : Numeric
        Sequences in the step.
    new_tokens : Numeric
        Tokens that each sequence adds: 1 in decode, the prompt or its chunk in prefill.
    context : Numeric
        Tokens in each sequence's KV cache before the step.
    mask : {"causal", "full"}
        Count attention as kernels compute it, or every query over every position.
    logits : {"last", "all"}
        Run the LM head on the last token of a sequence, or on all of them.
    mla : {"auto", "absorbed", "expanded"}
        The form of latent attention; auto takes the one with fewer FLOPs.

    Raises
    ------
    InputError
        If a size is not positive (context: negative) or not finite. Fractions are allowed: solvers look between whole numbers.
    """

    phase: Phase
    batch: Numeric = 1
    new_tokens: Numeric = 1
    context: Numeric = 0
    mask: Literal["causal", "full"] = "causal"
    logits: Literal["last", "all"] = "last"
    mla: Literal["auto", "absorbed", "expanded"] = "auto"

    def __post_init__(self) -> None:
        """Check the sizes."""
        for name, is_low, wanted in (
            ("batch", operator.le, "above 0"),
            ("new_tokens", operator.le, "above 0"),
            ("context", operator.lt, "of at least 0"),
        ):
            value = getattr(self, name)
            if not is_finite(value) or anywhere(is_low(value, 0)):
                raise InputError(f"{name}: {value} is not a finite number {wanted}")

    @property
    def tokens(self) -> Numeric:
        """Tokens that pass the layers."""
        return self.batch * self.new_tokens

    @property
    def logit_rows(self) -> Numeric:
        """Tokens that pass the LM head."""
        return self.tokens if self.logits == "all" else self.batch

    def with_batch(self, batch: Numeric) -> Step:
        """Return the same step with another number of sequences."""
        return replace(self, batch=batch)
