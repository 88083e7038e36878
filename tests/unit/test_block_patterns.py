"""Regular expressions in a quantisation block: those of published checkpoints are followed, those that would hang are refused."""

from __future__ import annotations

import re
import time

import pytest

from planner.errors import CatalogueError
from planner.importers.huggingface import read_config
from planner.importers.huggingface.quantization.regexes import MAX_WAYS, PatternError, compiled
from planner.model import Model

CONFIG = {
    "model_type": "qwen3_moe",
    "hidden_size": 64,
    "intermediate_size": 256,
    "moe_intermediate_size": 32,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 94,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 1000,
}


def read(ignored: list[str]) -> Model:
    weights = {"type": "int", "num_bits": 4, "strategy": "group", "group_size": 32}
    block = {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "config_groups": {"g": {"weights": weights, "targets": ["Linear"]}},
        "ignore": ignored,
    }
    return read_config({**CONFIG, "quantization_config": block}, name="m", where="config.json")


HANG = [
    r".*.*.*.*.*.*x$",
    r"(a|m|.|\w)*Z",
    r"(\w+\.?){1,40}Z",
    r"(.?){60}(.){60}Z",
    r"(x+x+)+y",
    r"(a|a)*Z",
    r"(?:.?.?.?.?.?.?.?.?.?.?.?.?.?.?.?.?.?.?.?.?.?.?.?.?)Z",
    r"([a-z]+)*Z",
    r"(?=(.*.*.*.*.*))Z",
    r"(?:\w|[a-z]|.)(?:\w|[a-z]|.)(?:\w|[a-z]|.)(?:\w|[a-z]|.)(?:\w|[a-z]|.)(?:\w|[a-z]|.)(?:\w|[a-z]|.)(?:\w|[a-z]|.)(?:\w|[a-z]|.)Z",
    r"(.)\1*Z",
]

# What LLM Compressor, GPTQModel and ModelOpt write, or their users.
REAL = [
    r".*self_attn.*",
    r".*lm_head.*",
    r".*mlp\.experts\.\d+\.(gate|up|down)_proj$",
    r".*mlp\.(gate|up|gate_up|down)_proj.*",
    r"model\.layers\.(0|1|2)\..*",
    r"model\.layers\.\d+\.mlp\.gate$",
    r".*\.layers\.(\d+)\.(self_attn|mlp)\..*(q|k|v|o|gate|up|down)_proj.*",
    r"^(?!.*experts).*",
    r".*[qkvo]_proj.*",
    r"(?:model\.)?(?:language_model\.)?layers\.[0-9]+\..*",
    r"model.*layers.*mlp.*down_proj.*",
    r".*(?i:VISION).*",
]


@pytest.mark.parametrize("pattern", HANG)
def test_what_would_hang_is_refused(pattern: str) -> None:
    re.compile(pattern)
    began = time.process_time()
    with pytest.raises(CatalogueError, match="repeats what may itself be repeated") as caught:
        read([f"re:{pattern}"])
    assert time.process_time() - began < 2
    assert repr(pattern[:60]) in str(caught.value)


@pytest.mark.parametrize("pattern", REAL)
def test_what_is_written_in_earnest_is_followed(pattern: str) -> None:
    assert compiled(pattern).ways < MAX_WAYS
    read([f"re:{pattern}"])


def test_what_is_no_pattern_is_refused() -> None:
    for pattern in ("(", "[", "a**", "(?P<a>x)(?P<a>y)", "a{99999999999999999999}"):
        with pytest.raises(PatternError, match="is no regular expression"):
            compiled(pattern)
    with pytest.raises(CatalogueError, match="longer than 1000"):
        read(["re:" + "a" * 1000])
    with pytest.raises(CatalogueError, match="longer than 1000"):
        read(["a" * 1001])


def test_a_pattern_that_python_warns_of_is_followed() -> None:
    assert compiled("[[a].*").regex.match("[b")


def share(model: Model) -> float:
    """Return how much of the queries, keys and values is left in 16 bits."""
    return sum(part.share for part in model.quantization.parts if part.of == "qkv_proj" and part.stored == "bf16")


def test_a_number_that_is_spelled_out_names_its_layer_alone() -> None:
    assert share(read([r"re:.*layers\.7\.self_attn.*"])) == pytest.approx(1 / 94, abs=1e-6)
    assert share(read([r"re:.*layers\.(7|8)\.self_attn.*"])) == pytest.approx(2 / 94, abs=1e-6)
    assert share(read([r"re:.*layers\.7.*self_attn.*"])) == pytest.approx(11 / 94, abs=1e-6)
    assert share(read([r"re:.*\.9[0-3]\.self_attn.*", r"re:model\.layers\.1\..*"])) == pytest.approx(5 / 94, abs=1e-6)


def test_many_patterns_take_no_longer_than_one_answer_may() -> None:
    began = time.process_time()
    assert share(read([rf"re:.*layers\.{layer}\.self_attn.*" for layer in range(94)])) == 0
    assert time.process_time() - began < 2
    began = time.process_time()
    with pytest.raises(CatalogueError, match="more patterns than can be followed"):
        read([rf"re:.*layers\.({layer}|{layer + 1})\..*(\d|x).*" for layer in range(400)])
    assert time.process_time() - began < 2
