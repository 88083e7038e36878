"""Models without attention: Mamba, xLSTM, RWKV-4."""

from __future__ import annotations

from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import LAYER, Family
from planner.importers.huggingface.parts.networks import dense
from planner.importers.huggingface.parts.recurrent import Mamba2Reader, expanded, mamba, matrix_lstm, rwkv
from planner.model import Projection


def _xlstm_width(config: Config, index: int) -> int:  # the signature of every reader
    """Return the hidden size times a factor, rounded up to a multiple; less than one element more is dropped."""
    multiple = config.integer("ffn_round_up_to_multiple_of", 64)
    width = int(config.real("ffn_proj_factor", 8 / 3) * config.integer("hidden_size"))
    return max(-(-width // multiple) * multiple, 1)


def _xlstm_layer(config: Config, index: int) -> dict[str, Any]:
    """xLSTM: the norms of a layer have offsets where its projections have biases; the last norm has none."""
    return {"other_parameters": 2 * config.integer("hidden_size") if config.flag("use_bias", default=False) else 0}


def _rwkv_width(config: Config, index: int) -> int:
    return config.optional("intermediate_size") or 4 * config.integer("hidden_size")


def _rwkv_layer(config: Config, index: int) -> dict[str, Any]:
    """RWKV: a gate of the hidden width on the feed-forward network, mixes of its inputs; the first layer has a norm more."""
    hidden = config.integer("hidden_size")
    gate = Projection(name="receptance", input_size=hidden, output_size=hidden)
    return {"norms": 2 if index else 3, "projections": (gate,), "other_parameters": 2 * hidden}


def _xlstm_layers(config: Config) -> int:
    return config.optional("num_blocks") or config.integer("num_hidden_layers")


MAMBA = Family(
    attention=mamba(),
    norms=1,
    tied=True,
    ignored=("intermediate_size", "d_inner", "d_model", "n_layer", "rms_norm", "pad_vocab_size_multiple"),
)

FAMILIES: dict[str, Family] = {
    "mamba": MAMBA,
    "falcon_mamba": MAMBA,
    "mamba2": Family(
        attention=Mamba2Reader(
            heads="num_heads",
            head_dim=expanded("num_heads", "head_dim", expand="expand"),
            groups="n_groups",
            state="state_size",
            kernel="conv_kernel",
            conv_bias="use_conv_bias",
            bias="use_bias",
        ),
        norms=1,
        ignored=("time_step_rank", "expand", "rms_norm", "chunk_size"),
    ),
    "xlstm": Family(
        attention=matrix_lstm,
        ffn=dense(width=_xlstm_width, bias="use_bias"),
        layer=_xlstm_layer,
        layers=_xlstm_layers,
        tied="never",
        aliases={"hidden_size": "embedding_dim", "num_hidden_layers": "num_blocks"},
        ignored=("add_out_norm", "mode", "weight_mode"),
    ),
    "rwkv": Family(
        attention=rwkv,
        ffn=dense(kind="plain", width=_rwkv_width),
        layer=_rwkv_layer,
        norm=LAYER,
        ignored=("context_length",),
    ),
}
