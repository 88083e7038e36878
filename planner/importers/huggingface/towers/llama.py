"""The towers of Llama 3.2 Vision and Llama 4."""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.clip import patches
from planner.importers.huggingface.towers.counts import attention, convolution, linear, mlp, norm
from planner.importers.huggingface.towers.whole import TowerCount, Whole, WholeCount


def mllama(config: Config) -> int:
    """Llama 3.2 Vision: pictures of several tiles; a second stack, whose layers are gated, over the first."""
    hidden, size = config.integer("hidden_size"), config.integer("patch_size")
    tiles, tokens = config.integer("max_num_tiles"), patches(config) + 1
    # An identity for each shape that tiles may take, and one for none.
    shapes = len(config.listed("supported_aspect_ratios") or ()) + 1
    head = hidden // config.integer("attention_heads")
    inner = head * config.integer("attention_heads")
    layer = 2 * norm(hidden) + attention(hidden, inner=inner, bias=False)
    layer += mlp(hidden, config.integer("intermediate_size"))
    gates, layers, above = 2, config.integer("num_hidden_layers"), config.integer("num_global_layers")
    positions = tokens * hidden + shapes * tiles * tokens * hidden + 1
    before_and_after = 2 * (shapes * tiles * hidden + 1)
    embedded = convolution(config.integer("num_channels"), hidden, size, size, bias=False) + hidden
    return embedded + positions + before_and_after + 2 * norm(hidden) + (layers + above) * layer + above * gates


def llama4(config: Config) -> int:
    """Llama 4: a class token, norms before and after the stack, and a network for neighbouring patches."""
    hidden, size = config.integer("hidden_size"), config.integer("patch_size")
    heads = config.integer("num_attention_heads")
    layer = 2 * norm(hidden) + attention(hidden, inner=hidden // heads * heads)
    layer += mlp(hidden, config.integer("intermediate_size"))
    patch = linear(config.integer("num_channels") * size * size, hidden, bias=False)
    tokens = (patches(config) + 2) * hidden
    out = config.integer("projector_output_dim")
    adapter = linear(config.integer("intermediate_size"), config.integer("projector_input_dim"), bias=False)
    adapter += linear(out, out, bias=False)
    return patch + tokens + 2 * norm(hidden) + config.integer("num_hidden_layers") * layer + adapter


KINDS: Mapping[str, TowerCount] = {"llama4_vision_model": llama4, "mllama_vision_model": mllama}


def _projected(usual: str, *, bias: bool) -> WholeCount:
    """Return a count of a tower and of a matrix from the width that it states to the text's."""

    def read(whole: Whole) -> int:
        width = whole.part("vision_config", usual).integer("vision_output_dim")
        return whole.own("vision_config", usual) + linear(width, whole.hidden_size, bias=bias)

    return read


WHOLES: Mapping[str, WholeCount] = {
    "llama4": _projected("llama4_vision_model", bias=False),
    "mllama": _projected("mllama_vision_model", bias=True),
}
