"""RADIO, as files say that name its parts by the arguments it was trained with; and the models that have one.

Structure: vLLM 0.33.0, ``models/radio.py`` and ``models/nano_nemotron_vl.py``. Scales of layers, which the class there has, are in no
checkpoint; neither is a last norm, unless the arguments ask for one.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.counts import block, linear, norm
from planner.importers.huggingface.towers.fields import shrinking
from planner.importers.huggingface.towers.whole import TowerCount, UncountedError, Whole, WholeCount, tower_defaults

CHANNELS = 3


def _tokens(args: Config) -> int:
    """Return how many learned tokens come first: one for each teacher, and registers that fill them up to a multiple."""
    teachers = args.listed("teachers") or ()
    names = {str(teacher.get("name")) for teacher in teachers if isinstance(teacher, Mapping)}
    first = len(names) if args.flag("cls_token_per_teacher", default=False) else 1
    stated, multiple = args.optional("cpe_num_registers", least=0), args.optional("register_multiple", least=0)
    if stated:
        return first + stated
    return first + (multiple - first % multiple if multiple else 0)


def radio(config: Config) -> int:
    """Return the parameters of a tower, whose arguments name a plain transformer of fixed sizes."""
    args = config.part("args", tower_defaults("radio_args"))
    name = args.text("model")
    known = tower_defaults(name)
    if not known:
        raise UncountedError(f"vision_config.args.model: {name[:60]!r} is not one that is counted")
    for field in ("adaptor_names", "feature_normalizer_config", "inter_feature_normalizer_config"):
        if config.get(field):
            raise UncountedError(f"vision_config.{field}: what it adds is not counted")
    width, size = int(known["hidden_size"]), config.integer("patch_size")
    side = round(args.integer("cpe_max_size") / size)
    frames = config.integer("video_temporal_patch_size")
    patches = linear(CHANNELS * size**2, width, bias=False)
    moving = linear(CHANNELS * frames * size**2, width, bias=False) if frames > 1 else 0
    last = norm(width) if args.flag("model_norm", default=False) else 0
    layers = int(known["num_hidden_layers"]) * block(width, int(known["intermediate_size"]))
    return patches + moving + (side**2 + _tokens(args)) * width + layers + last


KINDS: Mapping[str, TowerCount] = {"radio_model": radio}


def _nemotron(whole: Whole) -> int:
    """Return the parameters of the tower, and of a norm and two matrices without offsets."""
    if whole.has("sound_config"):
        raise UncountedError("sound_config: the tower for sound is not counted")
    width, inner = whole.integer("vit_hidden_size"), whole.integer("projector_hidden_size")
    joined = width * round(shrinking(whole.config)) ** 2
    text = whole.text_part()
    last = norm(width) if text.optional("num_nextn_predict_layers", least=0) else 0
    projector = (
        norm(joined, bias=False) + linear(joined, inner, bias=False) + linear(inner, whole.hidden_size, bias=False)
    )
    return whole.tower("vision_config", "radio_model", KINDS) + projector + last


WHOLES: Mapping[str, WholeCount] = {"NemotronH_Nano_VL_V2": _nemotron, "nemotron_nano_vl_v2": _nemotron}
