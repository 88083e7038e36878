"""InternViT: a class token, learned positions, layers whose halves are scaled; and the models that lead it to a text through two matrices.

Structure: vLLM 0.33.0, ``models/intern_vit.py``, ``models/interns1_vit.py``, ``models/internvl.py`` and ``models/nvlm_d.py``.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.counts import convolution, linear, mlp, norm
from planner.importers.huggingface.towers.fields import grid, pair, shrinking, stated_norm
from planner.importers.huggingface.towers.intern import internvl
from planner.importers.huggingface.towers.whole import TowerCount, UncountedError, Whole, WholeCount


def _embeddings(config: Config, width: int) -> int:
    """Return the parameters of the convolution that makes patches, of a class token, and of learned positions."""
    made = convolution(config.integer("num_channels"), width, *pair(config, "patch_size"))
    return made + width + (grid(config) + 1) * width


def _layer(config: Config, width: int, inner: int, *, bias: bool, normed: bool) -> int:
    """Return the parameters of a layer whose heads have `inner` elements together: the scales of both halves included."""
    heads = linear(width, 3 * inner, bias=bias) + linear(inner, width) + 2 * norm(inner, bias=False) * normed
    return heads + mlp(width, config.integer("intermediate_size")) + 2 * stated_norm(config, width) + 2 * width


def _intern_vit(config: Config, dummies: int = 0) -> int:
    """Return the parameters of a tower; `dummies` are heads that a checkpoint has beyond those that its file states."""
    if config.flag("use_moe", default=False):
        raise UncountedError("vision_config.use_moe: experts in a tower are not counted")
    width = config.integer("hidden_size")
    inner = width + dummies * (width // config.integer("num_attention_heads"))
    bias = config.flag("qkv_bias", default=False)
    layer = _layer(config, width, inner, bias=bias, normed=config.flag("qk_normalization", default=True))
    return _embeddings(config, width) + config.integer("num_hidden_layers") * layer


KINDS: Mapping[str, TowerCount] = {"intern_vit_6b": _intern_vit, "interns1_vision": internvl}


def _joined(whole: Whole, usual: str) -> int:
    """Return the elements of the patches that are joined into one."""
    joined = int(shrinking(whole.config)) ** 2
    return whole.part("vision_config", usual).integer("hidden_size") * joined


def _led_by(usual: str) -> WholeCount:
    """Return a reader of a file whose projector is a norm and two matrices of the text's width."""

    def read(whole: Whole) -> int:
        joined, text = _joined(whole, usual), whole.hidden_size
        return whole.tower("vision_config", usual, KINDS) + norm(joined) + mlp(joined, text, outputs=text)

    return read


def _nvlm(whole: Whole) -> int:
    """NVLM: seven heads more than stated, so that eight chips can share them; a projector as wide as the text's feed-forward network."""
    kinds = {**KINDS, "intern_vit_6b": lambda config: _intern_vit(config, whole.integer("dummy_heads"))}
    joined = _joined(whole, "intern_vit_6b")
    text = whole.text_part()
    projector = mlp(joined, text.integer("intermediate_size"), bias=False, outputs=whole.hidden_size)
    return whole.tower("vision_config", "intern_vit_6b", kinds) + norm(joined) + projector


WHOLES: Mapping[str, WholeCount] = {
    "NVLM_D": _nvlm,
    "h2ovl_chat": _led_by("intern_vit_6b"),
    "interns1": _led_by("interns1_vision"),
    "internvl_chat": _led_by("intern_vit_6b"),
    "nvlm_d": _nvlm,
    "skywork_chat": _led_by("intern_vit_6b"),
}
