"""Precision policies by name, and what runs where a chip lacks a format."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from planner import catalogue
from planner.cli.main import run
from planner.errors import InputError
from planner.hardware import WIDER, Peaks
from planner.precision import KV_FORMATS, SCHEMES, Role, policy

# What each name stands for: bytes of a weight and of an activation (shares of scales included), and the arithmetic.
# Scales: fp8_block one fp32 for 128 x 128 weights and for 128 activations (arXiv 2412.19437, 3.3.2); int4 groups of 128 with 16 + 4
# bits (AWQ); mxfp4 one byte for 32 (OCP Microscaling 1.0); nvfp4 one byte for 16.
INT4 = (4 + 20 / 128) / 8
MXFP4 = (4 + 8 / 32) / 8
NVFP4 = (4 + 8 / 16) / 8
NAMES: dict[str, tuple[float, float, str]] = {
    "fp32": (4, 4, "fp32"),
    "tf32": (4, 4, "tf32"),
    "bf16": (2, 2, "bf16"),
    "fp16": (2, 2, "fp16"),
    "fp8": (1, 1, "fp8"),
    "fp8_block": (1 + 4 / 128**2, 1 + 4 / 128, "fp8"),
    "int8": (1, 1, "int8"),
    "w8a16": (1, 2, "bf16"),
    "w4a16": (INT4, 2, "bf16"),
    "w4a8": (INT4, 1, "int8"),
    "mxfp4_w4a16": (MXFP4, 2, "bf16"),
    "mxfp4_w4a8": (MXFP4, 1, "fp8"),
    "nvfp4": (NVFP4, NVFP4, "nvfp4"),
}


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    weight, activation, arithmetic = NAMES[name]
    scheme = policy(name).linear
    assert scheme.weights.bytes_per_element == pytest.approx(weight)
    assert scheme.activations.bytes_per_element == pytest.approx(activation)
    assert scheme.arithmetic == arithmetic
    assert arithmetic in WIDER


def test_every_arithmetic_has_a_place_in_a_chip_s_file() -> None:
    for arithmetic in {scheme.arithmetic for scheme in SCHEMES.values()}:
        assert {arithmetic, *WIDER[arithmetic]} <= set(Peaks.model_fields)


@pytest.mark.parametrize("name", [name for name, (weight, _, _) in NAMES.items() if weight < 2])
def test_under_a_quantised_policy_some_classes_stay_in_16_bits(name: str) -> None:
    precision = policy(name)
    for role in Role:
        stays = role in {Role.ROUTER, Role.LM_HEAD, Role.EMBEDDING, Role.NORM, Role.STATE}
        assert precision.scheme(role).name == ("bf16" if stays else name)


@pytest.mark.parametrize("name", ["fp32", "tf32", "bf16", "fp16"])
def test_under_a_plain_policy_everything_has_its_format(name: str) -> None:
    assert {policy(name).scheme(role).name for role in Role} == {name}


def test_experts_and_cache_have_formats_of_their_own() -> None:
    precision = policy("fp8", experts="mxfp4_w4a16", kv="int8")
    assert precision.scheme(Role.EXPERTS).name == "mxfp4_w4a16"
    assert precision.scheme(Role.SHARED_EXPERTS).name == "fp8"
    assert precision.scheme(Role.ATTENTION).name == "fp8"
    assert precision.kv.bytes_per_element == 1


@pytest.mark.parametrize(
    ("kv", "arithmetic"), [("bf16", "bf16"), ("fp8", "fp8"), ("fp4", "fp8"), ("int8", "bf16"), ("int4", "bf16")]
)
def test_attention_runs_in_what_kernels_of_the_cache_use(kv: str, arithmetic: str) -> None:
    """An fp8 cache is multiplied in fp8; an integer cache is converted to 16 bits first."""
    assert kv in KV_FORMATS
    assert policy("bf16", kv=kv).attention_arithmetic == arithmetic
    assert policy("int8", kv=kv).attention_arithmetic == arithmetic
    assert policy("fp32", kv=kv).attention_arithmetic == "fp32"


@pytest.mark.parametrize(("name", "kv"), [("bf61", "bf16"), ("", "bf16"), ("bf16", "bf8")])
def test_unknown_names(name: str, kv: str) -> None:
    with pytest.raises(InputError, match="unknown name"):
        policy(name, kv=kv)


# ---- formats that a chip lacks ---------------------------------------------------------------------------------------

FALLBACKS = [
    # chip, asked for, runs in, TFLOP/s of the chip's datasheet
    ("v100-sxm2-32gb", "bf16", "fp16", 125),
    ("v100-sxm2-32gb", "tf32", "fp32", 15.7),
    ("v100-sxm2-32gb", "int8", "fp16", 125),
    ("b300-sxm", "int8", "int8", 153.5),  # the chip has it, and it is slow: not replaced by what is faster
    ("mi355x", "nvfp4", "bf16", 2516.6),  # not its mxfp4
    ("mi355x", "mxfp4", "mxfp4", 10066.3),
    ("h100-sxm", "nvfp4", "bf16", 989),  # not its fp8
    ("h100-sxm", "mxfp4", "bf16", 989),
    ("h100-sxm", "int4", "bf16", 989),
    ("h100-sxm", "fp8", "fp8", 1979),
    ("h100-sxm", "tf32", "tf32", 494.5),
    ("a100-sxm-80gb", "fp8", "bf16", 312),  # not its int8
    ("a100-sxm-80gb", "int8", "int8", 624),
    ("tpu-v5e", "fp8", "bf16", 197),
    ("tpu-v5e", "fp32", "", None),  # bf16 is no wider
    ("tpu-v5e", "tf32", "", None),
]


@pytest.mark.parametrize(("name", "asked", "used", "tera"), FALLBACKS)
def test_the_narrowest_wider_format_runs(name: str, asked: str, used: str, tera: float | None) -> None:
    chip = catalogue.load_hardware(name)
    rate = chip.rate(asked)
    assert (rate.asked, rate.used) == (asked, used)
    assert rate.flops_per_s == (None if tera is None else pytest.approx(tera * 1e12))
    assert bool(rate.note) == (asked != used)
    assert all(word in rate.note for word in ([chip.name, asked, used] if asked != used else []))


@pytest.mark.parametrize("name", catalogue.names("hardware"))
def test_what_runs_instead_is_never_narrower(name: str) -> None:
    """On every chip of the catalogue: bits of what runs are at least those of what was asked for."""
    bits = {
        "nvfp4": 4,
        "mxfp4": 4,
        "int4": 4,
        "fp6": 6,
        "fp8": 8,
        "int8": 8,
        "bf16": 16,
        "fp16": 16,
        "tf32": 19,
        "fp32": 32,
    }
    chip = catalogue.load_hardware(name)
    for asked in WIDER:
        used = chip.rate(asked).used
        assert not used or bits[used] >= bits[asked]
        assert used == asked or getattr(chip.peak, asked) is None or getattr(chip.peak, asked).value is None


Ops = Callable[..., dict[str, Any]]


@pytest.fixture
def ops(capsys: pytest.CaptureFixture[str]) -> Ops:
    def call(chip: str, *arguments: str) -> dict[str, Any]:
        assert run(["ops", "llama-3.1-8b", "--hardware", chip, "--format", "json", *arguments]) == 0
        record: dict[str, Any] = json.loads(capsys.readouterr().out)
        record["row"] = {row["name"]: row for row in record["ops"]}
        return record

    return call


@pytest.mark.parametrize(
    ("chip", "precision", "tera", "ridge"),
    [
        ("a100-sxm-80gb", "fp8", 312, 312 / 2.039),
        ("h100-sxm", "nvfp4", 989, 989 / 3.35),
        ("v100-sxm2-32gb", "bf16", 125, 125 / 0.9),
    ],
)
def test_weights_keep_their_size_where_the_arithmetic_falls_back(
    ops: Ops, chip: str, precision: str, tera: float, ridge: float
) -> None:
    found = ops(chip, "--precision", precision, "--batch", "4096", "--context", "0")
    row = found["row"]["down_proj"]
    # 32 layers of 14336 x 4096.
    assert row["weight_bytes"] == pytest.approx(32 * 14336 * 4096 * NAMES[precision][0])
    assert row["compute_s"] == pytest.approx(32 * 2 * 4096 * 14336 * 4096 / (tera * 1e12))
    assert row["critical_intensity"] == pytest.approx(ridge * 1000 / 1000)
    assert any("arithmetic runs in" in note for note in found["notes"])


def test_without_any_rate_a_row_is_null_with_the_reason_and_the_answer_stands(ops: Ops) -> None:
    found = ops("tpu-v5e", "--precision", "fp32")
    row = found["row"]["qkv_proj"]
    for key in ("critical_intensity", "bound", "compute_s", "lower_s", "upper_s", "attainable_flops"):
        assert row[key] is None, key
    assert "no rate for fp32" in row["note"]
    # What needs no rate is there.
    assert row["flops"] == 32 * 2 * 4096 * (4096 + 2 * 1024)
    assert row["weight_bytes"] == 32 * 4096 * (4096 + 2 * 1024) * 4
    assert row["memory_s"] == pytest.approx((row["weight_bytes"] + row["activation_bytes"]) / 820e9)
    assert found["totals"]["lower_s"] is None
    assert found["totals"]["flops"] > 0


def test_a_native_format_is_used_though_it_is_slow(ops: Ops) -> None:
    found = ops("b300-sxm", "--precision", "int8", "--batch", "4096", "--context", "0")
    row = found["row"]["down_proj"]
    assert row["compute_s"] == pytest.approx(32 * 2 * 4096 * 14336 * 4096 / 153.5e12)
    assert not any("arithmetic runs in" in note for note in found["notes"])


@pytest.mark.parametrize("name", NAMES)
def test_every_name_runs_on_the_command_line(ops: Ops, name: str) -> None:
    found = ops("h100-sxm", "--precision", name)
    assert found["precision"]["name"] == name
    assert found["row"]["o_proj"]["weight_bytes"] == pytest.approx(32 * 4096 * 4096 * NAMES[name][0])


def test_the_table_shows_the_ridge_of_each_precision(capsys: pytest.CaptureFixture[str]) -> None:
    """H100: 1979 TFLOP/s in int8 over 3.35 TB/s are 591 FLOP/B, 989 in bf16 295, 67 in fp32 20."""
    assert run(["ops", "llama-3.1-8b", "--hardware", "h100-sxm"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    ridges = {line[0]: line[1] for line in lines if line and line[0] in ("int8", "bf16", "fp32")}
    assert ridges == {"int8": "591", "bf16": "295", "fp32": "20.0"}
