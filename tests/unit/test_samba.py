"""PLaMo 2 and Phi-4-mini-flash: Mamba between layers of attention, by hand sums of released sizes."""

from __future__ import annotations

from typing import Any

import pytest

from planner.decompose import decompose
from planner.errors import CatalogueError
from planner.importers.huggingface import read_config
from planner.memory import cache_bytes
from planner.model import GatedMemory, Mamba, Model, SoftmaxAttention
from planner.op import Kind
from planner.precision import policy
from planner.units import FORMATS
from planner.workload import Phase, Step

BF16 = FORMATS["bf16"]

PLAMO = {
    # mlx-community/plamo-2-1b config.json
    "model_type": "plamo2",
    "attention_window_size": 2048,
    "capacity_factor": 1.0,
    "eval_attention_n_bit": None,
    "expert_dropout": 0.0,
    "fp8_accum_dtype": "bfloat16",
    "group_size": 1024,
    "hidden_size": 2048,
    "hidden_size_per_head": 128,
    "image_feature_size": None,
    "image_proj_type": "linear",
    "intermediate_size": 8192,
    "linear_type": "fp8",
    "mamba_chunk_size": 256,
    "mamba_d_conv": 4,
    "mamba_d_state": 64,
    "mamba_enabled": True,
    "mamba_num_heads": 32,
    "mamba_step": 2,
    "max_position_embeddings": 10485760,
    "n_expert": None,
    "num_attention_heads": 16,
    "num_hidden_layers": 16,
    "num_key_value_heads": 1,
    "sliding_window": 2048,
    "sparse_step": None,
    "use_predefined_initial_state": False,
    "vocab_size": 100000,
}

FLASH = {
    # microsoft/Phi-4-mini-flash-reasoning config.json
    "model_type": "phi4flash",
    "hidden_size": 2560,
    "intermediate_size": 10240,
    "layer_norm_eps": 1e-05,
    "lm_head_bias": False,
    "mamba_d_conv": 4,
    "mamba_d_state": 16,
    "mamba_dt_rank": 160,
    "mamba_expand": 2,
    "max_position_embeddings": 262144,
    "mb_per_layer": 2,
    "mlp_bias": False,
    "num_attention_heads": 40,
    "num_hidden_layers": 32,
    "num_key_value_heads": 20,
    "sliding_window": 512,
    "tie_word_embeddings": True,
    "vocab_size": 200064,
}


def read(config: dict[str, Any]) -> Model:
    return read_config(config, name="test", where="config.json")


def flops(found: Model, kind: Kind, context: int = 1024) -> float:
    ops = decompose(found, Step(phase=Phase.DECODE, context=context), policy("bf16"))
    return sum(op.count * op.flops for op in ops if op.kind is kind)


# ---- PLaMo 2: vllm/model_executor/models/plamo2.py says which matrices there are -------------------------------------

PLAMO_MAMBA = 2048 * 8192 + 4096 * 2048 + 4096 * (128 + 2 * 64)
PLAMO_ATTENTION = 2048 * (2048 + 2 * 128) + 2048 * 2048
PLAMO_NETWORK = 3 * 2048 * 8192


def test_plamo_parameters() -> None:
    """Beside the matrices: convolution 4 x 4096, time steps 128 x 32, three numbers a head, norms; the head is tied."""
    mamba = PLAMO_MAMBA + 4 * 4096 + 128 * 32 + 3 * 32 + 128 + 2 * 64
    attention = PLAMO_ATTENTION + (16 + 1) * 128
    outside = 100000 * 2048 + 2048
    found = read(PLAMO)
    assert found.parameters == 8 * mamba + 8 * attention + 16 * (PLAMO_NETWORK + 4 * 2048) + outside
    # "1.29B" of pfnet/plamo-2-1b.
    assert found.parameters == pytest.approx(1.29e9, rel=0.003)
    assert not [note for note in found.notes if "not read" in note]


def test_plamo_cache() -> None:
    kept = cache_bytes(read(PLAMO), BF16)
    assert (kept.per_token, kept.window) == (0, 8 * 2048 * 2 * 128 * 2)
    # 32 heads of 128 channels with 64 elements each, and the last four inputs of 4096 channels.
    assert kept.state == 8 * (4096 * 64 + 4 * 4096) * 2


def test_plamo_layers_that_attend_to_everything() -> None:
    kept = cache_bytes(read({**PLAMO, "full_attention_idx": [1, 3, 5, 7, 9, 11, 13, 15]}), BF16)
    assert (kept.per_token, kept.window) == (8 * 2 * 128 * 2, 0)


def test_plamo_flops_of_a_token() -> None:
    """Every matrix once; the time step is projected inside the scan, which takes five FLOPs for an element of its state."""
    found = read(PLAMO)
    assert flops(found, Kind.MATMUL) == 2 * (8 * PLAMO_MAMBA + 8 * PLAMO_ATTENTION + 16 * PLAMO_NETWORK + 2048 * 100000)
    assert flops(found, Kind.ATTENTION) == 8 * 4 * 16 * 128 * 1025
    assert flops(found, Kind.STATE_SPACE) == 8 * (2 * 128 * 32 + 2 * 4 * 4096 + 5 * 4096 * 64)


@pytest.mark.parametrize(
    ("layers", "step", "attends"), [(16, 2, range(1, 16, 2)), (8, 4, (2, 6)), (1, 4, (0,)), (2, 5, (1,))]
)
def test_plamo_places_of_attention(layers: int, step: int, attends: Any) -> None:
    """One layer of each run of `mamba_step`, in its middle; the last one of a stack that is too short for that."""
    found = read({**PLAMO, "num_hidden_layers": layers, "mamba_step": step})
    assert _attending(found) == list(attends)


def _attending(found: Model) -> list[int]:
    flat = [layer for group in found.layers for _ in range(group.repeat) for layer in (group.pattern or (group,))]
    layers = [layer for layer in flat for _ in range(layer.repeat if layer not in found.layers else 1)]
    return [i for i, layer in enumerate(layers) if isinstance(layer.attention, SoftmaxAttention)]


def test_plamo_with_experts_is_an_error() -> None:
    with pytest.raises(CatalogueError, match="n_expert"):
        read({**PLAMO, "n_expert": 8})


def test_time_steps_shared_by_heads() -> None:
    """Projections 8 x 24 and 12 x 8, to step and state 12 x (2 + 6), steps 2 x 4 with a bias; a decay and a skip for each of 4 heads."""
    block = Mamba(kind="mamba", inner_size=12, state_size=3, time_step_rank=2, conv_kernel=4, time_steps=4)
    assert sum(t.parameters for t in block.tensors(8)) == 192 + 96 + 96 + 12 + 8 + 12 * 5


# ---- Phi-4-mini-flash: vllm/model_executor/models/phi4flash.py, of before it was taken out ---------------------------

FLASH_MAMBA = 2560 * 10240 + 5120 * (160 + 32) + 5120 * 2560
FLASH_GATED = 2 * 2560 * 5120
FLASH_ATTENTION = 2560 * (2560 + 2 * 1280) + 2560 * 2560
FLASH_CROSS = 2 * 2560 * 2560
FLASH_NETWORK = 3 * 2560 * 10240


def test_flash_parameters() -> None:
    """Nine layers of Mamba, seven that gate its memory, nine of attention, seven that attend to the keys of the last of those."""
    mamba = FLASH_MAMBA + 5 * 5120 + 161 * 5120 + 17 * 5120
    own = 4 * 64 + 2 * 64
    attention, cross = FLASH_ATTENTION + 5120 + 2560 + own, FLASH_CROSS + 2 * 2560 + own
    layers = 9 * mamba + 7 * FLASH_GATED + 9 * attention + 7 * cross + 32 * (FLASH_NETWORK + 4 * 2560)
    found = read(FLASH)
    assert found.parameters == layers + 200064 * 2560 + 2 * 2560
    # "3.8B" in the model card, 3.85B in its safetensors.
    assert found.parameters == pytest.approx(3.85e9, rel=0.002)
    assert not [note for note in found.notes if "not read" in note]


def test_flash_cache() -> None:
    kept = cache_bytes(read(FLASH), BF16)
    # One layer grows: 20 heads with 64 elements of key and of value; eight have a window of 512.
    assert kept.per_token == 2 * 20 * 64 * 2
    assert kept.window == 8 * 512 * 2 * 20 * 64 * 2
    assert kept.state == 9 * (5120 * 16 + 4 * 5120) * 2


def test_flash_flops_of_a_token() -> None:
    """Each of 40 heads scores by 64 elements and adds up the values of two heads, 128 elements; 8 layers see 512 positions."""
    found = read(FLASH)
    matrices = 9 * FLASH_MAMBA + 7 * FLASH_GATED + 9 * FLASH_ATTENTION + 7 * FLASH_CROSS + 32 * FLASH_NETWORK
    assert flops(found, Kind.MATMUL) == 2 * (matrices + 2560 * 200064)
    assert flops(found, Kind.ATTENTION) == 2 * 40 * (64 + 128) * (8 * 512 + 8 * 1025)


def test_flash_says_that_a_prompt_may_skip_half_of_it() -> None:
    assert [note for note in read(FLASH).notes if "last token of a prompt" in note]


def test_flash_windows_listed_by_layer() -> None:
    listed = [512 if i % 2 and i < 16 else None for i in range(32)]
    assert read({**FLASH, "sliding_window": listed}).layers == read(FLASH).layers
    types = ["sliding_attention" if i in (1, 3) else "full_attention" for i in range(32)]
    assert cache_bytes(read({**FLASH, "layer_types": types}), BF16).window == 2 * 512 * 2 * 20 * 64 * 2
    with pytest.raises(CatalogueError, match="sliding_window"):
        read({**FLASH, "sliding_window": ["512"] * 32})


def test_gated_memory_by_hand() -> None:
    block = GatedMemory(kind="gated_memory", inner_size=12)
    assert sum(t.parameters for t in block.tensors(8)) == 2 * 96
    assert (block.cache.width, block.cache.state_bytes) == (0, 0)


def test_differential_attention_weighs_the_values_of_two_heads() -> None:
    """Weights and cache are those of plain attention."""
    shape: dict[str, Any] = {"kind": "gqa", "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 3}
    plain, block = SoftmaxAttention(**shape), SoftmaxAttention(**shape, differential=True)
    assert block.tensors(8) == plain.tensors(8)
    assert block.cache == plain.cache
    with pytest.raises(ValueError, match="pairs"):
        SoftmaxAttention(kind="mqa", num_attention_heads=4, head_dim=3, differential=True)
