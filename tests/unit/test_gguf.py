"""Models from GGUF files: metadata to fields, tensors to exact sizes. Test files are written by the gguf library.

Sizes of types are the library's: Q4_K takes 144 bytes for 256 weights, Q6_K 210, Q8_0 34 for 32 (ggml-org/ggml, ggml-common.h).
"""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type
from gguf_files import write

from planner.catalogue import load_model
from planner.errors import CatalogueError, InputError
from planner.importers.gguf.header import Length, read_header
from planner.importers.huggingface.families import FAMILIES
from planner.memory import checkpoint_bytes
from planner.records import model_record
from planner.scenario import choose_precision, model_warnings

LLAMA = {
    "context_length": 2048,
    "block_count": 2,
    "embedding_length": 256,
    "feed_forward_length": 512,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "rope.dimension_count": 64,
}


def dense_shapes(
    layers: int = 2, *, q: int = 256, kv: int = 128, hidden: int = 256, width: int = 512
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a dense model's tensors, output before input as in memory."""
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (1024, hidden), "output_norm.weight": (hidden,)}
    for layer in range(layers):
        path = f"blk.{layer}."
        shapes |= {
            f"{path}attn_norm.weight": (hidden,),
            f"{path}ffn_norm.weight": (hidden,),
            f"{path}attn_q.weight": (q, hidden),
            f"{path}attn_k.weight": (kv, hidden),
            f"{path}attn_v.weight": (kv, hidden),
            f"{path}attn_output.weight": (hidden, q),
            f"{path}ffn_gate.weight": (width, hidden),
            f"{path}ffn_up.weight": (width, hidden),
            f"{path}ffn_down.weight": (hidden, width),
        }
    return shapes


def stored(path: Path) -> int:
    model = load_model(str(path))
    size: int = model_record(model, choose_precision(model))["weight_bytes"]
    return size


# Elements of the model above: embedding, attention and network of a layer, norms.
EMBEDDING, ATTENTION, NETWORK, NORMS = 1024 * 256, 2 * 256 * 256 + 2 * 128 * 256, 3 * 256 * 512, 5 * 256


def test_shapes_from_metadata(tmp_path: Path) -> None:
    model = load_model(str(write(tmp_path / "m.gguf", "llama", LLAMA, dense_shapes())))
    assert model.name == "Tiny"
    assert model.tie_word_embeddings
    assert model.vocab_size == 1024
    assert model.num_hidden_layers == 2
    assert model.max_position_embeddings == 2048
    assert model.parameters == EMBEDDING + 2 * (ATTENTION + NETWORK) + NORMS
    assert model_warnings(model) == ()


def test_half_precision(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", "llama", LLAMA, dense_shapes())
    assert stored(path) == 2 * (EMBEDDING + 2 * (ATTENTION + NETWORK)) + 4 * NORMS
    assert load_model(str(path)).quantization.linear == "fp16"


TYPES = {"token_embd": Type.Q6_K, "attn_v": Type.Q6_K, "ffn_down": Type.Q8_0, "blk": Type.Q4_K}


def test_types_of_single_tensors(tmp_path: Path) -> None:
    model = load_model(str(write(tmp_path / "m.gguf", "llama", LLAMA, dense_shapes(), TYPES)))
    q4, q6, q8 = 144 / 256, 210 / 256, 34 / 32
    values, down = 128 * 256, 256 * 512
    expected = (
        EMBEDDING * q6 + 2 * (values * q6 + (ATTENTION - values) * q4 + down * q8 + (NETWORK - down) * q4) + 4 * NORMS
    )
    assert model.checkpoint is not None
    assert model.checkpoint.bytes == expected
    # The operations' formats add up to the same bytes, and say them for each tensor.
    precision = model.quantization.precision("bf16")
    assert sum(checkpoint_bytes(model, precision).values()) == pytest.approx(expected, rel=1e-6)
    bits = {name: precision.scheme(role, name).weights.bytes_per_element * 8 for role, name in ROLES}
    assert bits["down_proj"] == 8.5
    assert bits["gate_up_proj"] == bits["o_proj"] == 4.5
    assert bits["qkv_proj"] == pytest.approx((384 * 4.5 + 128 * 6.5625) / 512, rel=1e-5)
    assert bits["lm_head"] == 6.5625


ROLES = [
    ("attention", "qkv_proj"),
    ("attention", "o_proj"),
    ("ffn", "gate_up_proj"),
    ("ffn", "down_proj"),
    ("lm_head", "lm_head"),
]


def test_a_split_file(tmp_path: Path) -> None:
    shapes = dense_shapes()
    whole = stored(write(tmp_path / "whole.gguf", "llama", LLAMA, shapes))
    first = {name: shape for name, shape in shapes.items() if "blk.1" not in name}
    second = {name: shape for name, shape in shapes.items() if "blk.1" in name}
    path = write(tmp_path / "m-00001-of-00002.gguf", "llama", LLAMA, first)
    with pytest.raises(CatalogueError, match="00002-of-00002"):
        load_model(str(path))
    write(tmp_path / "m-00002-of-00002.gguf", "llama", {}, second)
    assert stored(path) == whole


def test_the_header_is_enough(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", "llama", LLAMA, dense_shapes())
    size = stored(path)
    path.write_bytes(path.read_bytes()[:40_000])
    assert stored(path) == size


def test_a_folder_with_a_gguf_file(tmp_path: Path) -> None:
    write(tmp_path / "m.gguf", "llama", LLAMA, dense_shapes())
    assert load_model(str(tmp_path)).name == "Tiny"


def test_untied_head_and_biases(tmp_path: Path) -> None:
    shapes = dense_shapes() | {"output.weight": (1024, 256)}
    shapes |= {
        f"blk.{n}.attn_{part}.bias": (width,) for n in (0, 1) for part, width in (("q", 256), ("k", 128), ("v", 128))
    }
    model = load_model(str(write(tmp_path / "m.gguf", "qwen2", LLAMA, shapes)))
    assert not model.tie_word_embeddings
    assert model.parameters == 2 * EMBEDDING + 2 * (ATTENTION + 512 + NETWORK) + NORMS
    assert model_warnings(model) == ()


def test_experts_under_the_name_of_llama(tmp_path: Path) -> None:
    shapes = {name: shape for name, shape in dense_shapes().items() if "ffn_" not in name or "norm" in name}
    for n in (0, 1):
        shapes |= {
            f"blk.{n}.ffn_gate_inp.weight": (4, 256),
            f"blk.{n}.ffn_gate_exps.weight": (4, 512, 256),
            f"blk.{n}.ffn_up_exps.weight": (4, 512, 256),
            f"blk.{n}.ffn_down_exps.weight": (4, 256, 512),
        }
    fields = {**LLAMA, "expert_count": 4, "expert_used_count": 2}
    model = load_model(str(write(tmp_path / "m.gguf", "llama", fields, shapes, {"exps": Type.Q4_K})))
    assert model.parameters == EMBEDDING + 2 * (ATTENTION + 4 * NETWORK + 4 * 256) + NORMS
    assert model.active_parameters == model.parameters - 2 * 2 * NETWORK
    precision = model.quantization.precision("bf16")
    assert precision.experts.weights.bits == 4.5
    assert precision.linear.weights.bits == 16
    assert model_warnings(model) == ()


def test_qwen3_experts(tmp_path: Path) -> None:
    shapes = {name: shape for name, shape in dense_shapes().items() if "ffn_" not in name or "norm" in name}
    for n in (0, 1):
        shapes |= {
            f"blk.{n}.attn_q_norm.weight": (64,),
            f"blk.{n}.attn_k_norm.weight": (64,),
            f"blk.{n}.ffn_gate_inp.weight": (8, 256),
            f"blk.{n}.ffn_gate_exps.weight": (8, 128, 256),
            f"blk.{n}.ffn_up_exps.weight": (8, 128, 256),
            f"blk.{n}.ffn_down_exps.weight": (8, 256, 128),
        }
    fields = {
        **LLAMA,
        "attention.key_length": 64,
        "expert_count": 8,
        "expert_used_count": 2,
        "expert_feed_forward_length": 128,
    }
    model = load_model(str(write(tmp_path / "m.gguf", "qwen3moe", fields, shapes)))
    assert model_warnings(model) == ()
    assert model.parameters == EMBEDDING + 2 * (ATTENTION + 128 + 8 * 3 * 128 * 256 + 8 * 256) + NORMS


def test_latent_attention(tmp_path: Path) -> None:
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (1024, 256),
        "output_norm.weight": (256,),
        "output.weight": (1024, 256),
    }
    for n in range(3):
        path = f"blk.{n}."
        shapes |= {
            f"{path}attn_norm.weight": (256,),
            f"{path}ffn_norm.weight": (256,),
            f"{path}attn_q_a.weight": (64, 256),
            f"{path}attn_q_a_norm.weight": (64,),
            f"{path}attn_q_b.weight": (4 * 48, 64),
            f"{path}attn_kv_a_mqa.weight": (32 + 16, 256),
            f"{path}attn_kv_a_norm.weight": (32,),
            f"{path}attn_k_b.weight": (4, 32, 32),
            f"{path}attn_v_b.weight": (4, 32, 32),
            f"{path}attn_output.weight": (256, 4 * 32),
        }
        if n == 0:
            shapes |= {f"{path}ffn_{part}.weight": (512, 256) for part in ("gate", "up")} | {
                f"{path}ffn_down.weight": (256, 512)
            }
            continue
        shapes |= {f"{path}ffn_gate_inp.weight": (8, 256), f"{path}exp_probs_b.bias": (8,)}
        for kind, copies in (("exps", (8,)), ("shexp", ())):
            shapes |= {f"{path}ffn_{part}_{kind}.weight": (*copies, 64, 256) for part in ("gate", "up")}
            shapes |= {f"{path}ffn_down_{kind}.weight": (*copies, 256, 64)}
    fields = {
        "context_length": 2048,
        "block_count": 3,
        "embedding_length": 256,
        "feed_forward_length": 512,
        "attention.head_count": 4,
        "attention.head_count_kv": 1,
        "attention.q_lora_rank": 64,
        "attention.kv_lora_rank": 32,
        "attention.key_length": 48,
        "attention.value_length": 32,
        "attention.key_length_mla": 48,
        "attention.value_length_mla": 32,
        "rope.dimension_count": 16,
        "leading_dense_block_count": 1,
        "expert_count": 8,
        "expert_used_count": 2,
        "expert_shared_count": 1,
        "expert_feed_forward_length": 64,
    }
    model = load_model(str(write(tmp_path / "m.gguf", "deepseek2", fields, shapes)))
    assert model_warnings(model) == ()
    assert model.kv_elements_per_token == 3 * (32 + 16)
    assert [kind.count for kind in model.layer_kinds] == [1, 2]


@pytest.mark.parametrize(
    ("arch", "model_type", "per_layer", "fields"),
    [
        (
            "gemma2",
            "gemma2",
            {"post_attention_norm": (256,), "post_ffw_norm": (256,)},
            {"attention.sliding_window": 1024},
        ),
        (
            "gemma3",
            "gemma3_text",
            {"post_attention_norm": (256,), "post_ffw_norm": (256,), "attn_q_norm": (64,), "attn_k_norm": (64,)},
            {"attention.sliding_window": 1024},
        ),
        ("qwen3", "qwen3", {"attn_q_norm": (64,), "attn_k_norm": (64,)}, {}),
    ],
)
def test_further_architectures(
    tmp_path: Path, arch: str, model_type: str, per_layer: dict[str, tuple[int, ...]], fields: dict[str, Any]
) -> None:
    if model_type not in FAMILIES:
        pytest.skip(f"{model_type} is not read")
    shapes = dense_shapes() | {f"blk.{n}.{name}.weight": shape for n in (0, 1) for name, shape in per_layer.items()}
    path = write(tmp_path / "m.gguf", arch, {**LLAMA, "attention.key_length": 64, **fields}, shapes)
    model = load_model(str(path))
    assert model.parameters == sum(int(np.prod(shape)) for shape in shapes.values())
    assert not any("parameters" in note for note in model_warnings(model))


def test_fused_phi3(tmp_path: Path) -> None:
    if "phi3" not in FAMILIES:
        pytest.skip("phi3 is not read")
    shapes = {
        name: shape
        for name, shape in dense_shapes().items()
        if not any(part in name for part in ("attn_q", "attn_k", "attn_v", "ffn_gate"))
    }
    shapes |= {f"blk.{n}.attn_qkv.weight": (512, 256) for n in (0, 1)} | {
        f"blk.{n}.ffn_up.weight": (1024, 256) for n in (0, 1)
    }
    shapes |= {"output.weight": (1024, 256)}
    model = load_model(str(write(tmp_path / "m.gguf", "phi3", {**LLAMA, "attention.sliding_window": 2047}, shapes)))
    assert model.parameters == sum(int(np.prod(shape)) for shape in shapes.values())


def test_missing_tensors_are_told(tmp_path: Path) -> None:
    shapes = {name: shape for name, shape in dense_shapes().items() if "blk.1.ffn_down" not in name}
    model = load_model(str(write(tmp_path / "m.gguf", "llama", LLAMA, shapes)))
    assert any("parameters, its metadata describe" in note for note in model_warnings(model))


def test_an_architecture_that_is_not_known(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", "qwen2x", LLAMA, dense_shapes())
    with pytest.raises(CatalogueError, match="unknown architecture 'qwen2x', did you mean qwen2"):
        load_model(str(path))


def test_a_missing_field_is_an_error(tmp_path: Path) -> None:
    fields = {key: value for key, value in LLAMA.items() if key != "attention.head_count"}
    with pytest.raises(CatalogueError, match=r"llama\.attention\.head_count: is missing, the architecture needs it$"):
        load_model(str(write(tmp_path / "m.gguf", "llama", fields, dense_shapes())))


def test_long_lists_are_not_kept(tmp_path: Path) -> None:
    header = read_header(write(tmp_path / "m.gguf", "llama", LLAMA, dense_shapes()))
    assert header.metadata["tokenizer.ggml.tokens"] == Length(1024)


def test_every_byte_may_be_wrong(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", "llama", LLAMA, {"token_embd.weight": (1024, 256)})
    good = path.read_bytes()[:2000]
    for end in (0, 3, 4, 8, 24, 30, 100, 1000):
        path.write_bytes(good[:end])
        with pytest.raises(CatalogueError, match=r"m\.gguf"):
            load_model(str(path))
    for place in range(200):
        for value in (0, 0x7F, 0xFF):
            path.write_bytes(good[:place] + bytes([value]) + good[place + 1 :])
            with pytest.raises(InputError):
                load_model(str(path))


def test_without_the_library_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "m.gguf", "llama", LLAMA, dense_shapes())
    real = builtins.__import__

    def without(name: str, *arguments: Any, **more: Any) -> Any:
        if name == "gguf":
            raise ImportError(name)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"pip install 'roofline-planner\[gguf\]'"):
        load_model(str(path))
