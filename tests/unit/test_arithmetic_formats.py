"""What arithmetic runs in where a chip lacks a format: the narrowest wider one, never faster, and said aloud."""

from __future__ import annotations

import itertools
import json

import pytest
from command_line import run_planner

from planner import catalogue
from planner.hardware import WIDER
from planner.precision import SCHEMES, policy
from planner.units import FORMATS

TERA = 1e12

# Peaks as the files give them, with their sources.
CASES = [
    ("v100-sxm2-32gb", "bf16", "fp16", 125),  # Volta has no bf16
    ("v100-sxm2-32gb", "int8", "fp16", 125),
    ("v100-sxm2-32gb", "tf32", "fp32", 15.7),
    ("t4", "int4", "int4", 260),
    ("t4", "fp8", "fp16", 65),
    ("tpu-v5e", "fp8", "bf16", 197),
    ("tpu-v5e", "fp32", "", None),  # the matrix unit has no fp32
    ("b300-sxm", "int8", "int8", 153.5),  # a native rate is used, slow as it is
    ("b300-sxm", "mxfp4", "bf16", 2250),
    ("mi355x", "nvfp4", "bf16", 2516.6),  # has mxfp4, not nvfp4
    ("mi355x", "tf32", "fp32", 157.3),
    ("h100-sxm", "nvfp4", "bf16", 989),  # 4-bit falls to 16 bits, not to fp8
    ("h100-sxm", "mxfp4", "bf16", 989),
    ("h100-sxm", "int4", "bf16", 989),
    ("h100-sxm", "fp8", "fp8", 1979),
    ("a100-sxm-80gb", "fp8", "bf16", 312),
]


@pytest.mark.parametrize(("chip", "asked", "used", "tera"), CASES)
def test_arithmetic_runs_in_the_narrowest_wider_format(chip: str, asked: str, used: str, tera: float | None) -> None:
    rate = catalogue.load_hardware(chip).rate(asked)
    assert rate.used == used
    assert rate.flops_per_s == (None if tera is None else pytest.approx(tera * TERA))
    assert bool(rate.note) == (used != asked)
    if rate.note:
        assert asked in rate.note


@pytest.mark.parametrize("chip", catalogue.names("hardware"))
def test_a_format_that_is_lacking_is_never_faster_than_what_it_runs_in(chip: str) -> None:
    hardware = catalogue.load_hardware(chip)
    for asked in WIDER:
        rate = hardware.rate(asked)
        if rate.used not in ("", asked):
            assert rate.flops_per_s == hardware.rate(rate.used).flops_per_s


def test_wider_formats_are_wider() -> None:
    bits = {
        "fp32": 32,
        "tf32": 32,
        "bf16": 16,
        "fp16": 16,
        "fp8": 8,
        "int8": 8,
        "fp6": 6,
        "int4": 4,
        "mxfp4": 4,
        "nvfp4": 4,
    }
    assert bits.keys() == WIDER.keys()
    for narrow, wider in WIDER.items():
        steps = [bits[narrow], *(bits[name] for name in wider)]
        assert all(a <= b for a, b in itertools.pairwise(steps))
        assert narrow not in wider


def test_every_scheme_computes_in_a_format_that_peaks_are_known_by() -> None:
    assert {scheme.arithmetic for scheme in SCHEMES.values()} <= WIDER.keys()


@pytest.mark.parametrize("name", SCHEMES)
def test_weights_and_cache_keep_their_size_whatever_the_chip_lacks(name: str) -> None:
    found = {
        chip: json.loads(
            run_planner("ops", "llama-3.1-8b", "--hardware", chip, "--precision", name, "--format", "json").stdout
        )
        for chip in ("v100-sxm2-32gb", "b200-sxm")
    }
    for a, b in zip(*(result["ops"] for result in found.values()), strict=True):
        assert (a["name"], a["weight_bytes"], a["kv_bytes"]) == (b["name"], b["weight_bytes"], b["kv_bytes"])


def test_a_chip_without_a_rate_still_answers() -> None:
    result = run_planner("ops", "llama-3.1-8b", "--hardware", "tpu-v5e", "--precision", "fp32", "--format", "json")
    assert result.code == 0
    record = json.loads(result.stdout)
    projection = next(op for op in record["ops"] if op["name"] == "qkv_proj")
    assert projection["compute_s"] is projection["lower_s"] is projection["bound"] is None
    assert projection["flops"] > 0
    assert "no rate" in projection["note"]
    assert record["totals"]["lower_s"] is None


def test_the_output_says_what_runs_in_another_format() -> None:
    result = run_planner("ops", "llama-3.1-8b", "--hardware", "v100-sxm2-32gb", "--format", "json")
    assert "bf16" in result.stderr
    assert "fp16" in result.stderr
    assert all(op["arithmetic"] in ("fp16", None) for op in json.loads(result.stdout)["ops"] if op["flops"])


@pytest.mark.parametrize(
    ("name", "attention"), [("bf16", "bf16"), ("fp16", "fp16"), ("fp32", "fp32"), ("fp8", "bf16"), ("int8", "bf16")]
)
def test_attention_computes_in_the_base_format_with_a_16_bit_cache(name: str, attention: str) -> None:
    assert policy(name).attention_arithmetic == attention


def test_attention_over_an_fp8_cache_computes_in_fp8() -> None:
    assert policy("bf16", kv="fp8").attention_arithmetic == "fp8"
    assert policy("bf16", kv="int8").attention_arithmetic == "bf16"


@pytest.mark.parametrize(
    ("name", "bits"),
    [("fp32", 32), ("bf16", 16), ("fp8", 8), ("int8", 8), ("int4", 4 + 20 / 128), ("mxfp4", 4.25), ("nvfp4", 4.5)],
)
def test_bits_of_an_element_with_its_share_of_the_scale(name: str, bits: float) -> None:
    assert FORMATS[name].bytes_per_element * 8 == pytest.approx(bits)
