"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from planner.cli.output import FORMATS
from planner.precision import KV_FORMATS
from planner.scenario import default_lengths
from planner.units import LARGEST_COUNT
from planner.workload import Phase, Step

F = TypeVar("F", bound=Callable[..., Any])

positive = click.IntRange(1, LARGEST_COUNT)
count_or_zero = click.IntRange(0, LARGEST_COUNT)


def output_options(function: F) -> F:
    """Add --format and --output."""
    function = click.option("--output", "-o", metavar="FILE", help="Write to a file instead of the terminal.")(function)
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(FORMATS),
        default="table",
        show_default=True,
        help="How to print the result.",
    )(function)


def hardware_option(function: F) -> F:
    """Add --hardware."""
    return click.option(
        "--hardware", "hardware_name", metavar="HW", required=True, help="A chip of the catalogue, or a YAML file."
    )(function)


def assume_option(function: F) -> F:
    """Add --assume."""
    return click.option(
        "--assume",
        type=click.Choice(["llama-like"]),
        help="Read a config of an unknown model_type as this; check the parameter count.",
    )(function)


def precision_options(function: F) -> F:
    """Add --precision, --moe-precision and --kv-precision."""
    function = click.option(
        "--kv-precision",
        type=click.Choice(KV_FORMATS),
        default="bf16",
        show_default=True,
        help="Format of the KV cache.",
    )(function)
    function = click.option("--moe-precision", metavar="P", help="Precision of routed experts, where it differs.")(
        function
    )
    return click.option(
        "--precision",
        metavar="P",
        help="A precision policy, such as bf16, int8 or fp8; as the checkpoint stores it by default.",
    )(function)


def step_options(function: F) -> F:
    """Add the options that describe a forward step."""
    options = (
        click.option("--phase", type=click.Choice(["decode", "prefill"]), default="decode", show_default=True),
        click.option("--batch", type=positive, default=1, show_default=True, help="Sequences in the step."),
        click.option(
            "--context",
            type=count_or_zero,
            help="Tokens in each KV cache before the step.  [default: 4096 in decode, 0 in prefill]",
        ),
        click.option(
            "--new-tokens",
            type=positive,
            help="Tokens that each sequence adds.  [default: 1 in decode, 4096 in prefill]",
        ),
        click.option("--mask", type=click.Choice(["causal", "full"]), default="causal", show_default=True),
        click.option("--logits", type=click.Choice(["last", "all"]), default="last", show_default=True),
        click.option("--mla", type=click.Choice(["auto", "absorbed", "expanded"]), default="auto", show_default=True),
    )
    for option in reversed(options):
        function = option(function)
    return function


def step_of(options: Mapping[str, Any]) -> Step:
    """Return the step that the values of `step_options` describe."""
    phase = Phase(options["phase"])
    context, new_tokens = default_lengths(phase, options["context"], options["new_tokens"])
    return Step(
        phase=phase,
        batch=options["batch"],
        new_tokens=new_tokens,
        context=context,
        mask=options["mask"],
        logits=options["logits"],
        mla=options["mla"],
    )


def engine_option(function: F) -> F:
    """Add --engine."""
    return click.option(
        "--engine",
        metavar="NAME",
        help="Whose memory rules say what fits: a name, or a YAML file.  [default: the catalogue's]",
    )(function)


def layout_options(function: F) -> F:
    """Add the options that lay a replica out over chips."""
    options = (
        click.option("--tp", type=positive, default=1, show_default=True, help="Chips that share every layer."),
        click.option("--pp", type=positive, default=1, show_default=True, help="Pipeline stages."),
        click.option("--ep", type=positive, default=1, show_default=True, help="Groups that share routed experts."),
        click.option(
            "--attention-dp", type=positive, default=1, show_default=True, help="Ranks with sequences of their own."
        ),
        click.option(
            "--cp", type=positive, default=1, show_default=True, help="Chips that share each sequence of a prefill."
        ),
        click.option(
            "--expert-imbalance",
            type=click.FloatRange(1, LARGEST_COUNT),
            default=1.0,
            show_default=True,
            help="Tokens of the busiest expert group over the mean.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


LAYOUT_OPTIONS = ("tp", "pp", "ep", "attention_dp", "cp", "expert_imbalance")
"""The names of `layout_options`, which are those of a layout's fields."""
