"""Every kind of attention, and of what stands in its place: weights, cache and operations, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from planner.decompose import decompose
from planner.memory import cache_bytes, sequence_bytes
from planner.model import (
    AttentionBlock,
    CompressedAttention,
    CrossAttention,
    DeltaAttention,
    Encoder,
    FeedForward,
    FeedForwardBlock,
    GatedRecurrence,
    Indexer,
    LatentAttention,
    LayerGroup,
    LightningAttention,
    Mamba,
    Mamba2,
    MatrixLstm,
    MixtureOfExperts,
    Model,
    PatchAttention,
    Rwkv,
    ShortConvolution,
    SoftmaxAttention,
)
from planner.op import Kind
from planner.precision import policy
from planner.units import FORMATS
from planner.workload import Phase, Step

HIDDEN = 8
BF16 = FORMATS["bf16"]


def parameters(block: AttentionBlock | FeedForwardBlock, hidden: int = HIDDEN) -> int:
    return sum(tensor.parameters for tensor in block.tensors(hidden))


def softmax(**fields: Any) -> SoftmaxAttention:
    shape = {"kind": "gqa", "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 3}
    return SoftmaxAttention(**shape | fields)


def model(*blocks: AttentionBlock, hidden: int = HIDDEN, encoder: Encoder | None = None, **group: Any) -> Model:
    layer = LayerGroup(attention=blocks if len(blocks) > 1 else blocks[0], norms=0, **group)
    return Model(
        name="test",
        hidden_size=hidden,
        vocab_size=10,
        tie_word_embeddings=True,
        final_norm=False,
        layers=(layer,),
        encoder=encoder,
    )


def flops(built: Model, kind: Kind, **step: Any) -> float:
    ops = decompose(built, Step(**{"phase": Phase.DECODE, "context": 9, **step}), policy("bf16"))
    inside = [op for op in ops if op.name != "lm_head"]
    return sum(op.count * op.flops for op in inside if op.kind is kind)


# ---- softmax attention -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        # queries 8x12, keys and values 2 x 8x6, output 12x8
        ({}, 96 + 96 + 96),
        ({"qkv_bias": True}, 288 + 12 + 6 + 6),
        ({"qkv_bias": True, "key_bias": False}, 288 + 12 + 6),
        ({"output_bias": True}, 288 + 8),
        ({"qk_norm": "head"}, 288 + 3 + 3),
        ({"qk_norm": "head", "qk_norm_bias": True}, 288 + 12),
        ({"qk_norm": "full"}, 288 + 12 + 6),
        ({"sinks": True}, 288 + 4),
        ({"output_gate": "head"}, 288 + 8 * 4),
        ({"output_gate": "element"}, 288 + 8 * 12),
        ({"output_gate": "element", "qkv_bias": True}, 288 + 24 + 8 * 12 + 12),
        ({"output_gate": "element", "qkv_bias": True, "gate_bias": False}, 288 + 24 + 8 * 12),
        ({"tied_values": True}, 288 - 48),
        ({"shared_kv": True}, 288 - 96),
        ({"shared_kv": True, "qk_norm": "head"}, 288 - 96 + 3),
        ({"v_head_dim": 5}, 96 + 48 + 80 + 160),
        ({"input_size": 16}, 2 * (96 + 96) + 96),
        # index queries 8x2x5, key 8x5, weights 8x2, norm 2x5
        ({"indexer": Indexer(num_heads=2, head_dim=5), "index_topk": 4}, 288 + 80 + 40 + 16 + 10),
    ],
)
def test_softmax_weights(fields: dict[str, Any], expected: int) -> None:
    assert parameters(softmax(**fields)) == expected


@pytest.mark.parametrize("kind", ["value", "query"])
def test_more_experts_of_attention_than_there_are_make_no_sense(kind: str) -> None:
    with pytest.raises(ValueError, match="sent to 4 experts of attention, and there are 2"):
        softmax(**{f"{kind}_experts": 2, f"{kind}_experts_per_tok": 4})


def test_softmax_cache() -> None:
    assert softmax().cache.width == 2 * (3 + 3)
    assert softmax(v_head_dim=5).cache.width == 2 * (3 + 5)
    assert softmax(shared_kv=True).cache.width == 0
    # Tied values are cached beside their keys, since keys are turned by their position and values are not.
    assert softmax(tied_values=True).cache.width == 2 * (3 + 3)
    assert cache_bytes(model(softmax(sliding_window=7)), BF16).window == 7 * 12 * 2
    sparse = softmax(indexer=Indexer(num_heads=2, head_dim=5), index_topk=4)
    assert cache_bytes(model(sparse), BF16).per_token == 12 * 2
    assert cache_bytes(model(sparse), BF16).index_per_token == 5 * 2


@pytest.mark.parametrize(
    ("fields", "positions"),
    [({}, 10), ({"sliding_window": 4}, 4), ({"attention_chunk_size": 4}, 2), ({"index_topk": 6}, 6)],
)
def test_softmax_core_flops(fields: dict[str, Any], positions: int) -> None:
    """A token after 9 others: two FLOPs for each of 4 heads, 3 + 3 elements and the positions that it sees."""
    assert flops(model(softmax(**fields)), Kind.ATTENTION) == 2 * 4 * 6 * positions


def test_sparse_attention_scores_every_position_and_attends_to_some() -> None:
    built = model(softmax(indexer=Indexer(num_heads=2, head_dim=5), index_topk=6))
    # Scores of 2 heads of 5 elements at 10 positions; projections of 8 x (2 x 5 + 5 + 2).
    assert flops(built, Kind.INDEXER) == 2 * 10 * 10 + 2 * 8 * 17
    assert flops(built, Kind.ATTENTION) == 2 * 4 * 6 * 6


def test_a_layer_that_shares_keys_and_values_reads_them_all_the_same() -> None:
    ops = decompose(model(softmax(shared_kv=True)), Step(phase=Phase.DECODE, context=9), policy("bf16"))
    (core,) = [op for op in ops if op.kind is Kind.ATTENTION]
    assert core.kv_bytes == 10 * 12 * 2


def test_indexer_needs_a_number_of_positions() -> None:
    with pytest.raises(ValidationError, match="index_topk"):
        softmax(indexer=Indexer(num_heads=2, head_dim=5))


# ---- within patches --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("queries", "kept"), [("patches", 5), ("tokens", 2)])
def test_attention_within_a_patch(queries: str, kept: int) -> None:
    shape = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 3, "vectors_per_patch": 2}
    block = PatchAttention(kind="patch", queries=queries, tokens_per_patch=4.5, **shape)  # type: ignore[arg-type]
    # queries 8x12, keys and values 2 x 8x6, output 12x8, two norms
    assert parameters(block) == 96 + 96 + 96 + 16
    # keys and values of 2 heads of 3 elements, of the vectors of a patch or of its tokens
    assert block.cache.state_bytes == 2 * 2 * 3 * kept * 2
    # a token meets both vectors, whichever of them asks
    assert flops(model(block), Kind.ATTENTION) == 2 * 4 * 6 * 2


# ---- latent attention ------------------------------------------------------------------------------------------------


def latent(**fields: Any) -> LatentAttention:
    shape = {"num_attention_heads": 2, "kv_lora_rank": 4, "qk_nope_head_dim": 3, "qk_rope_head_dim": 1, "v_head_dim": 5}
    return LatentAttention(kind="mla", **shape | fields)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        # queries 8x8, down 8x5, its norm 4, up 4x16, output 10x8
        ({}, 64 + 40 + 4 + 64 + 80),
        # queries by way of 6 elements: 8x6, norm 6, 6x8
        ({"q_lora_rank": 6}, 48 + 6 + 48 + 188),
        ({"q_lora_rank": 6, "attention_bias": True}, 48 + 6 + 48 + 188 + 6 + 5 + 8),
        ({"output_gate": "head"}, 252 + 8 * 2),
        ({"output_gate": "element"}, 252 + 8 * 10),
        ({"sinks": True}, 252 + 2),
        # index queries from the 6 elements: 6x2x3, key 8x3, weights 8x2, norm 2x3
        (
            {"q_lora_rank": 6, "indexer": Indexer(num_heads=2, head_dim=3), "index_topk": 4},
            290 + 36 + 24 + 16 + 6,
        ),
    ],
)
def test_latent_weights(fields: dict[str, Any], expected: int) -> None:
    assert parameters(latent(**fields)) == expected


def test_latent_cache_is_one_vector_whatever_the_heads() -> None:
    assert latent().cache.width == latent(num_attention_heads=64).cache.width == 5
    assert latent(indexer=Indexer(num_heads=2, head_dim=3), index_topk=4).cache.index_width == 3


def test_latent_core_absorbed_and_expanded() -> None:
    # Absorbed: 2 heads attend to 10 compressed vectors of 4 + 1 elements, and sum 4 of them.
    assert flops(model(latent()), Kind.ATTENTION, mla="absorbed") == 2 * 2 * 10 * (5 + 4)
    assert flops(model(latent()), Kind.ATTENTION, mla="expanded") == 2 * 2 * 10 * (4 + 5)
    sparse = latent(index_topk=6)
    assert flops(model(sparse), Kind.ATTENTION, mla="absorbed") == 2 * 2 * 6 * (5 + 4)


def test_compressed_attention() -> None:
    block = CompressedAttention(
        kind="compressed",
        num_attention_heads=4,
        head_dim=6,
        q_lora_rank=3,
        o_groups=2,
        o_lora_rank=5,
        sliding_window=4,
        compress_rate=2,
        overlap=True,
        indexer=Indexer(num_heads=2, head_dim=4),
        index_topk=3,
    )
    queries, keys = 8 * 3 + 3 + 3 * 24, 8 * 6 + 6
    output = 2 * (12 * 5) + 10 * 8
    compressor = 2 * 8 * 12 + 2 * 12 + 6
    indexer = 2 * 8 * 8 + 2 * 8 + 4 + 3 * 8 + 8 * 2
    assert parameters(block) == 4 + queries + keys + output + compressor + indexer
    # Entries of 6 elements for every second token, 4 recent tokens whole.
    assert (block.cache.width, block.cache.index_width, block.cache.state_bytes) == (3, 2, 4 * 6 * 2)
    # The window of 4 tokens, and 3 of the 5 entries that 10 tokens give.
    assert flops(model(block), Kind.ATTENTION) == pytest.approx(2 * 4 * 12 * (4 + 3))


def test_cross_attention() -> None:
    block = CrossAttention(kind="cross", num_attention_heads=2, head_dim=4, qkv_bias=True, output_bias=True)
    assert parameters(block) == 4 * 64 + 4 * 8
    assert block.cache.source_width == 2 * 8
    encoder = Encoder(layers=(LayerGroup(ffn=FeedForward(kind="plain", intermediate_size=2)),), norms=0)
    built = model(block, encoder=encoder)
    # The source is as long as the context: 9 tokens. 2 heads of 4 + 4 elements.
    assert flops(built, Kind.ATTENTION) == 2 * 2 * 8 * 9
    assert sequence_bytes(built, 9, BF16) == 9 * 16 * 2
    # Decode reads the source's keys and values from the cache, and projects queries and the result only.
    assert flops(built, Kind.MATMUL) == 2 * (64 + 64)
    # Prefill of 9 tokens projects the source, and runs the encoder over it and the decoder over one token.
    assert flops(built, Kind.MATMUL, phase=Phase.PREFILL, context=0, new_tokens=9) == 9 * 2 * 32 + 2 * 128 + 9 * 2 * 128


def test_cross_attention_merged_with_self_attention() -> None:
    cross = {"kind": "cross", "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 3}
    encoder = Encoder(layers=(LayerGroup(ffn=FeedForward(kind="plain", intermediate_size=2)),), norms=0)
    built = model(softmax(), CrossAttention(**cross, merged=True, shared_weights=True), encoder=encoder)
    alone = model(softmax())
    assert built.parameters == alone.parameters + 32 + 8  # the encoder's network and its norm
    # Queries and outputs are projected once for both; a prefill projects the source's keys and values, 8 to 2 x 6 elements.
    assert flops(built, Kind.MATMUL) == flops(alone, Kind.MATMUL) == 2 * 288
    prefill = {"phase": Phase.PREFILL, "context": 0, "new_tokens": 9}
    assert flops(built, Kind.MATMUL, **prefill) == 2 * 288 + 9 * 2 * (96 + 32)
    with pytest.raises(ValueError, match="shared_weights: true"):
        CrossAttention(**cross, merged=True)


# ---- recurrent kinds -------------------------------------------------------------------------------------------------


def test_lightning_attention() -> None:
    block = LightningAttention(kind="lightning", num_attention_heads=2, head_dim=3)
    assert parameters(block) == 8 * 4 * 6 + 6 + 6 * 8
    assert block.cache.state_bytes == 2 * 3 * 3 * 2
    assert flops(model(block), Kind.STATE_SPACE) == 5 * 18


def delta(**fields: Any) -> DeltaAttention:
    shape = {"num_key_heads": 1, "num_value_heads": 2, "key_head_dim": 3, "value_head_dim": 4, "conv_kernel": 2}
    return DeltaAttention(**{"kind": "gated_delta", **shape, **fields})


def test_gated_delta() -> None:
    # Into: queries 3, keys 3, values 8, gate 8, decay and step 2 each. Convolution of 14 channels over 2 tokens.
    assert parameters(delta()) == 8 * 26 + 28 + (2 + 2) + 4 + 8 * 8
    assert delta().cache.state_bytes == (2 * 12 + 14 * 2) * 2
    assert flops(model(delta()), Kind.STATE_SPACE) == 7 * 24 + 2 * 2 * 14


def test_kimi_delta() -> None:
    block = delta(kind="kda", num_key_heads=2, decay_rank=5, gate_rank=5)
    # Into: queries 6, keys 6, values 8, step 2. Decay of each key channel by way of 5, gate by way of 5.
    low_rank = 2 * 8 * 5 + 5 * 6 + 5 * 8
    assert parameters(block) == 8 * 22 + low_rank + 20 * 2 + (6 + 2) + 4 + 64
    assert parameters(delta(kind="kda", num_key_heads=2)) == 8 * (22 + 6 + 8) + 40 + 8 + 4 + 64


def test_mamba() -> None:
    block = Mamba(kind="mamba", inner_size=16, state_size=3, time_step_rank=2, conv_kernel=4)
    # in 8x32, conv 16x4+16, x 16x(2+6), dt 2x16+16, A and D 16x4, out 16x8
    assert parameters(block) == 256 + 80 + 128 + 48 + 64 + 128
    assert parameters(block.model_copy(update={"inner_norms": True})) == 704 + 2 + 6
    assert block.cache.state_bytes == (16 * 3 + 16 * 4) * 2
    # The time step is projected inside the scan.
    assert flops(model(block), Kind.STATE_SPACE) == 7 * 48 + 2 * 4 * 16 + 2 * 2 * 16
    assert flops(model(block), Kind.MATMUL) == 2 * (256 + 128 + 128)


def test_mamba_with_heads_has_the_same_weights_and_more_of_the_scan() -> None:
    shape = {"kind": "mamba", "inner_size": 16, "state_size": 3, "time_step_rank": 2, "conv_kernel": 4}
    one, two = Mamba(**shape), Mamba(**shape, num_heads=2)
    assert parameters(two) == parameters(one)
    assert flops(model(two), Kind.MATMUL) == flops(model(one), Kind.MATMUL) - 2 * 128


def test_mamba_2() -> None:
    block = Mamba2(kind="mamba2", num_heads=4, head_dim=3, n_groups=2, state_size=5, conv_kernel=4)
    # in 8 x (12 + 12 + 20 + 4), conv of 12 + 20 channels with bias, A, D and step bias, norm 12, out 12x8
    assert parameters(block) == 8 * 48 + 32 * 5 + 12 + 12 + 96
    assert block.cache.state_bytes == (4 * 15 + 32 * 4) * 2
    assert flops(model(block), Kind.STATE_SPACE) == 5 * 60 + 2 * 4 * 32
    assert parameters(block.model_copy(update={"bias": True})) == parameters(block) + 48 + 8
    assert parameters(block.model_copy(update={"bias": True, "output_bias": False})) == parameters(block) + 48
    assert parameters(block.model_copy(update={"gated_norm": False})) == parameters(block) - 12


def test_short_convolution() -> None:
    block = ShortConvolution(kind="short_conv", channels=8, conv_kernel=3)
    assert parameters(block) == 8 * 24 + 24 + 64
    assert block.cache.state_bytes == 8 * 3 * 2
    assert flops(model(block), Kind.STATE_SPACE) == 2 * 3 * 8


def test_gated_recurrence() -> None:
    block = GatedRecurrence(kind="rg_lru", lru_width=6, num_heads=2, conv_kernel=4)
    # two projections in with biases, conv with bias, one parameter a channel, 2 x 2 gates of 3x3 with biases, out with bias
    assert parameters(block) == 2 * (48 + 6) + 30 + 6 + 2 * (2 * 9 + 6) + 48 + 8
    assert block.cache.state_bytes == (6 + 6 * 4) * 2


def test_matrix_lstm() -> None:
    block = MatrixLstm(kind="mlstm", num_heads=2, qk_head_dim=3, v_head_dim=4)
    # q and k 6 each, v and output gate 8 each, two gates a head with biases, norm 8, out 8x8
    assert parameters(block) == 8 * 28 + 8 * 4 + 4 + 8 + 64
    assert block.cache.state_bytes == 2 * (3 * 4 + 3 + 1) * 2


def test_rwkv() -> None:
    block = Rwkv(kind="rwkv", hidden_size=8, attention_size=6)
    assert parameters(block) == 3 * 48 + 3 * 8 + 2 * 6 + 48
    assert block.cache.state_bytes == (3 * 6 + 2 * 8) * 2


# ---- layers of several blocks ----------------------------------------------------------------------------------------


def test_parallel_mixers_add_up() -> None:
    both = model(softmax(), LightningAttention(kind="lightning", num_attention_heads=2, head_dim=3))
    assert both.parameters == 10 * HIDDEN + 288 + 246
    assert cache_bytes(both, BF16).per_token == 24
    assert cache_bytes(both, BF16).state == 36


def test_shared_weights_are_stored_once_and_run_each_time() -> None:
    first = LayerGroup(attention=softmax(), norms=0)
    again = LayerGroup(repeat=3, attention=softmax(shared_weights=True), norms=0)
    built = model(softmax()).model_copy(update={"layers": (first, again)})
    alone = model(softmax())
    built = Model.model_validate(built.model_dump())
    assert built.parameters == alone.parameters
    assert flops(built, Kind.MATMUL) == 4 * flops(alone, Kind.MATMUL)
    assert cache_bytes(built, BF16).per_token == 4 * 24


def test_layers_that_need_an_image_are_skipped_for_text() -> None:
    block = CrossAttention(kind="cross", num_attention_heads=2, head_dim=4)
    built = model(block, ffn=FeedForward(kind="plain", intermediate_size=2), needs_source=True)
    assert built.parameters == 10 * HIDDEN + 256 + 32
    assert flops(built, Kind.MATMUL) == 0
    assert cache_bytes(built, BF16).per_token == 0


def test_dense_network_beside_experts() -> None:
    experts = MixtureOfExperts(kind="moe", num_experts=4, num_experts_per_tok=1, moe_intermediate_size=3)
    built = model(softmax(), ffn=(FeedForward(kind="gated", intermediate_size=5), experts))
    dense, routed, router = 3 * 8 * 5, 4 * 3 * 8 * 3, 8 * 4
    assert built.parameters == 80 + 288 + dense + routed + router
    assert built.active_parameters == 80 + 288 + dense + routed // 4 + router
    assert flops(built, Kind.MATMUL) == 2 * (288 + dense + routed // 4 + router)


def test_experts_in_a_narrower_stream() -> None:
    experts = MixtureOfExperts(
        kind="moe",
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=3,
        latent_size=5,
        gated=False,
        shared_intermediate_size=7,
    )
    # router 8x4, to and from the stream 2 x 8x5, experts 4 x 2 x 5x3, shared 2 x 8x7
    assert parameters(experts) == 32 + 80 + 120 + 112
    assert flops(model(softmax(), ffn=experts), Kind.MATMUL) == 2 * (288 + 32 + 80 + 60 + 112)


def test_zero_experts_take_tokens_and_compute_nothing() -> None:
    experts = MixtureOfExperts(
        kind="moe", num_experts=4, num_experts_per_tok=3, moe_intermediate_size=3, zero_experts=2
    )
    assert parameters(experts) == 8 * 6 + 4 * 72
    # Of 3 choices among 6, 2 fall on experts that compute.
    assert flops(model(softmax(), ffn=experts), Kind.MATMUL) == pytest.approx(2 * (288 + 48 + 2 * 72))
