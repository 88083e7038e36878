"""RWKV-5, 6 and 7: their makers' counts and formulas, and hand sums of a small layer."""

from __future__ import annotations

from typing import Any

import pytest

from planner.decompose import decompose
from planner.errors import CatalogueError
from planner.importers.huggingface import read_config
from planner.memory import cache_bytes
from planner.model import Model, Rwkv7, RwkvMatrix
from planner.op import Kind
from planner.precision import policy
from planner.units import FORMATS
from planner.workload import Phase, Step

BF16 = FORMATS["bf16"]
VOCABULARY = 65536


def read(**config: Any) -> Model:
    return read_config({"vocab_size": VOCABULARY, **config}, name="test", where="config.json")


def world(model_type: str, hidden: int, layers: int) -> Model:
    """The fields of the RWKV/rwkv-5-world and RWKV/v6-Finch config files: `num_attention_heads` is the size of a head there."""
    return read(
        model_type=model_type,
        attention_hidden_size=hidden,
        head_size=64,
        head_size_divisor=8,
        hidden_size=hidden,
        intermediate_size=None,
        num_attention_heads=64,
        num_hidden_layers=layers,
        rescale_every=6,
        tie_word_embeddings=False,
    )


def goose(hidden: int, layers: int, ranks: tuple[int, int, int, int], **more: Any) -> Model:
    """The fields of fla-hub/rwkv7-*-world config.json; ranks of decay, in-context rate, value and gate."""
    names = ("decay_low_rank_dim", "a_low_rank_dim", "v_low_rank_dim", "gate_low_rank_dim")
    fields = {
        "model_type": "rwkv7",
        "attn": None,
        "attn_mode": "chunk",
        "fuse_norm": True,
        "head_dim": 64,
        "hidden_act": "sqrelu",
        "hidden_ratio": 4.0,
        "hidden_size": hidden,
        "intermediate_size": 4 * hidden,
        "norm_bias": True,
        "norm_first": True,
        "num_heads": None,
        "num_hidden_layers": layers,
        "tie_word_embeddings": False,
        **dict(zip(names, ranks, strict=True)),
    }
    return read(**fields | more)


# The formula of arXiv 2404.05892, section on parameters: 13 D^2 L + 14 D L + 4 D + 2 D V for Eagle (RWKV-5).
@pytest.mark.parametrize(
    ("hidden", "layers", "billions"), [(1024, 24, 0.46), (2048, 24, 1.58), (2560, 32, 3.06), (4096, 32, 7.52)]
)
def test_eagle(hidden: int, layers: int, billions: float) -> None:
    found = world("rwkv5", hidden, layers)
    by_formula = 13 * hidden**2 * layers + 14 * hidden * layers + 4 * hidden + 2 * hidden * VOCABULARY
    assert found.parameters == found.active_parameters == by_formula
    assert found.parameters == pytest.approx(billions * 1e9, rel=0.01)


# Finch (RWKV-6): 13 D^2 L + 464 D L + 4 D + 2 D V, where mixes have rank 32 and the decay 64; both are twice that at D = 4096.
@pytest.mark.parametrize(
    ("hidden", "layers", "billions", "tolerance"),
    # The paper's figures, and the sizes that name the later 7B and 14B (blog.rwkv.com, "RWKV v6 Finch 14B is here").
    [(2048, 24, 1.6, 0.01), (2560, 32, 3.1, 0.01), (4096, 32, 7, 0.1), (4096, 61, 14, 0.1)],
)
def test_finch(hidden: int, layers: int, billions: float, tolerance: float) -> None:
    found = world("rwkv6", hidden, layers)
    vectors = 16 + (896 if hidden == 4096 else 448)
    by_formula = 13 * hidden**2 * layers + vectors * hidden * layers + 4 * hidden + 2 * hidden * VOCABULARY
    assert found.parameters == by_formula
    assert found.parameters == pytest.approx(billions * 1e9, rel=tolerance)


def test_finch_as_the_other_library_writes_it() -> None:
    """fla-hub/rwkv6-7B-finch holds the weights of RWKV/v6-Finch-7B under other names."""
    found = read(
        model_type="rwkv6",
        expand_k=1,
        expand_v=1,
        gate_low_rank_dim=128,
        proj_low_rank_dim=64,
        hidden_ratio=3.5,
        hidden_size=4096,
        intermediate_size=None,
        norm_bias=True,
        norm_first=True,
        num_heads=64,
        num_hidden_layers=32,
        tie_word_embeddings=False,
    )
    same = world("rwkv6", 4096, 32)
    assert found.layers == same.layers
    assert not [note for note in (*found.notes, *same.notes) if "not read" in note]


# Counts of RWKV7-World3 in arXiv 2503.14456, table of released models: 0.1B, 0.4B, 1.5B and 2.9B.
@pytest.mark.parametrize(
    ("hidden", "layers", "ranks", "parameters"),
    [
        (768, 12, (64, 64, 32, 128), 191_034_624),
        (1024, 24, (64, 64, 32, 128), 450_767_872),
        (2048, 24, (96, 96, 64, 256), 1_527_404_544),
        (2560, 32, (96, 96, 64, 320), 2_947_735_040),
    ],
)
def test_goose(hidden: int, layers: int, ranks: tuple[int, int, int, int], parameters: int) -> None:
    found = goose(hidden, layers, ranks)
    assert found.parameters == parameters
    assert not [note for note in found.notes if "not read" in note]
    assert found.kv_elements_per_token == 0
    # A matrix of 64 x 64 for each head, and the last input of both halves of a layer.
    assert cache_bytes(found, BF16).state == layers * (hidden * 64 + 2 * hidden) * 2


def test_goose_computes_the_ranks_that_are_null() -> None:
    """Ranks of SmerkyG/RWKV7-Goose-1.4B-Pile-HF are null: those that the 1.5B model has, which is as wide."""
    found = read(
        model_type="rwkv7",
        attention_hidden_size=2048,
        head_size=64,
        hidden_size=2048,
        intermediate_size=None,
        lora_rank_decay=None,
        lora_rank_gate=None,
        lora_rank_iclr=None,
        lora_rank_value_residual_mix=None,
        num_hidden_layers=24,
        tie_word_embeddings=False,
    )
    assert found.layers == goose(2048, 24, (96, 96, 64, 256)).layers


def test_goose_computes_the_ranks_that_the_library_leaves_open() -> None:
    """fla/layers/rwkv7.py: 2.5, 2.5, 1.7 and 5 times the root of 2048, which is 45.3, in whole 32s: 113, 113, 77 and 226."""
    nothing = goose(2048, 3, (64, 64, 64, 64), decay_low_rank_dim=None, a_low_rank_dim=None, v_low_rank_dim=None)
    assert nothing.layers == goose(2048, 3, (128, 128, 64, 64)).layers
    assert goose(2048, 3, (64, 64, 64, 64), gate_low_rank_dim=None).layers == goose(2048, 3, (64, 64, 64, 224)).layers


def test_goose_with_layers_of_attention() -> None:
    attn = {"layers": [1], "num_heads": 16, "num_kv_heads": 4, "window_size": 512, "qkv_bias": False}
    found = goose(1024, 2, (64, 64, 32, 128), attn=attn)
    assert cache_bytes(found, BF16).window == 512 * 2 * 4 * 64 * 2
    plain = goose(1024, 2, (64, 64, 32, 128))
    # Attention of 1024 x (1024 + 512) and 1024 x 1024, in place of 4 D^2 + 2 D (64 + 64 + 32 + 128) + 14 vectors and the norm's.
    assert plain.parameters - found.parameters == (4 - 2.5) * 1024**2 + 1024 * (2 * 288 + 14)


def test_a_type_that_is_not_known_is_read_by_its_class() -> None:
    """Early files of flash-linear-attention say rwkv7_fla."""
    early = goose(768, 12, (64, 64, 32, 128), model_type="rwkv7_fla", architectures=["RWKV7ForCausalLM"])
    assert early.parameters == 191_034_624
    assert [note for note in early.notes if "rwkv7_fla" in note]


def test_wide_values() -> None:
    """`value_dim` is a list with a width for each layer."""
    plain, wide = goose(1024, 2, (64, 64, 32, 128)), goose(1024, 2, (64, 64, 32, 128), value_dim=[1024, 2048])
    # Projections of values in and out, what leads from the ranks of value and gate to values, a bias, and the norm's two vectors.
    assert wide.parameters - plain.parameters == 1024 * (2 * 1024 + 32 + 128 + 1 + 2)


QRWKV = {
    # recursal/QRWKV6-32B-Instruct-Preview-v0.1 config.json
    "model_type": "rwkv6qwen2",
    "attention_bias": True,
    "attention_output_bias": False,
    "hidden_size": 5120,
    "intermediate_size": 27648,
    "max_window_layers": 64,
    "num_attention_heads": 40,
    "num_hidden_layers": 64,
    "num_key_value_heads": 8,
    "sliding_window": 131072,
    "use_sliding_window": False,
    "tie_word_embeddings": False,
    "vocab_size": 152064,
}


def test_rwkv_in_a_qwen() -> None:
    """The tensors that llama.cpp loads (src/models/rwkv6qwen2.cpp), with ranks of 64 and 128 at this width."""
    found = read(**QRWKV)
    attention = 3 * 5120**2 + 2 * 5120 * 1024 + 2 * 5120 * (5 * 64 + 128) + 7 * 5120 + 5120 + 2 * 1024
    assert found.parameters == 64 * (attention + 3 * 5120 * 27648 + 2 * 5120) + 5120 + 2 * 152064 * 5120
    assert found.parameters == pytest.approx(34.7e9, rel=0.01)
    assert cache_bytes(found, BF16).state == 64 * (40 * 128 * 128 + 5120) * 2
    assert not [note for note in found.notes if "not read" in note]


# ---- one layer by hand -----------------------------------------------------------------------------------------------


def flops(found: Model, kind: Kind) -> float:
    ops = decompose(found, Step(phase=Phase.DECODE, context=9), policy("bf16"))
    return sum(op.count * op.flops for op in ops if op.kind is kind)


def test_finch_flops_of_a_token() -> None:
    """Every matrix once: the makers' count but for vectors, the embedding, and the biases of the decay."""
    hidden, layers = 2048, 24
    matrices = 13 * hidden**2 * layers + 2 * (5 * 32 + 64) * hidden * layers + hidden * VOCABULARY
    assert flops(world("rwkv6", hidden, layers), Kind.MATMUL) == 2 * matrices


def test_goose_flops_of_a_token() -> None:
    hidden, layers = 768, 12
    matrices = layers * hidden * (12 * hidden + 2 * (64 + 64 + 32 + 128)) - 2 * hidden * 32 + hidden * VOCABULARY
    found = goose(hidden, layers, (64, 64, 32, 128))
    assert flops(found, Kind.MATMUL) == 2 * matrices
    # The delta rule takes seven FLOPs for an element of the state; mixing with the token before, two for each of two inputs.
    assert flops(found, Kind.STATE_SPACE) == layers * (7 * hidden * 64 + 2 * 2 * hidden)


def test_blocks_by_hand() -> None:
    heads = {"hidden_size": 8, "num_heads": 2, "key_head_dim": 3, "value_head_dim": 4}
    # Projections 8 x (6 + 6 + 8 + 8) and 8 x 8; four mixes of 8, decay and bonus of 6, norm of 8 and 8.
    eagle = RwkvMatrix(kind="rwkv5", **heads)
    assert sum(t.parameters for t in eagle.tensors(8)) == 224 + 64 + 32 + 12 + 16
    # Besides: two mixes, five maps 8 x 2 x 8, and the decay 8 x 3 and 3 x 6.
    finch = RwkvMatrix(kind="rwkv6", mix_rank=2, decay_rank=3, **heads)
    assert sum(t.parameters for t in finch.tensors(8)) == 348 + 16 + 160 + 24 + 18
    goose_block = Rwkv7(kind="rwkv7", decay_rank=1, rate_rank=2, gate_rank=3, value_rank=5, **heads)
    # 8 x (6 + 6 + 8), out 64, mixes 48, three vectors of 6, norm 16; decay 8 + 6 + 6, rate 16 + 12 + 6, gate 24 + 24, value 40 + 40 + 8.
    assert sum(t.parameters for t in goose_block.tensors(8)) == 160 + 64 + 48 + 18 + 16 + 20 + 34 + 48 + 88
    assert eagle.cache.state_bytes == finch.cache.state_bytes == goose_block.cache.state_bytes == 2 * (2 * 12 + 16)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "rwkv5", "hidden_size": 100, "num_hidden_layers": 2}, "head_size"),
        ({"model_type": "rwkv5", "hidden_size": 128, "num_hidden_layers": 2, "model_version": "5_0"}, "model_version"),
        ({"model_type": "rwkv6", "hidden_size": 128, "num_hidden_layers": 2, "num_heads": 3}, "num_heads"),
        ({"model_type": "rwkv7", "hidden_size": 128, "num_hidden_layers": 2, "head_dim": 48}, "head_dim"),
        ({"model_type": "rwkv7", "hidden_size": 128, "num_hidden_layers": 2, "value_dim": [128]}, "value_dim"),
    ],
)
def test_what_does_not_fit_is_an_error(config: dict[str, Any], message: str) -> None:
    with pytest.raises(CatalogueError, match=message):
        read(**config)


def test_block_of_a_low_rank_needs_the_rank() -> None:
    with pytest.raises(ValueError, match="mix_rank"):
        RwkvMatrix(kind="rwkv6", hidden_size=8, num_heads=2, key_head_dim=4, value_head_dim=4)
