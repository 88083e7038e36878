"""Counts the towers and projectors of files that describe more than a text model.

Towers are not rated: their parameters are part of a checkpoint's bytes and of what is stored beside the text model. Each file here
holds towers of one kin: `KINDS` has the count of a tower by the ``model_type`` of its part of the file, `WHOLES` the count of all
towers and projectors by the ``model_type`` of the whole. Those that the transformers library has no class of are gathered by
`custom`; their kinds are known to their own wholes alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.errors import PlannerError
from planner.importers.huggingface.architectures import stated_architecture
from planner.importers.huggingface.towers import (
    blip,
    clip,
    codec,
    custom,
    gemma,
    glm,
    intern,
    llama,
    mixed,
    omni,
    phi,
    pixtral,
    plain,
    qwen,
    sam,
    speech,
    stages,
    timm,
    vq,
    whisper,
)
from planner.importers.huggingface.towers.whole import TowerCount, UncountedError, Whole, WholeCount
from planner.model import Model

_KINS = (
    *(blip, clip, codec, custom, gemma, glm, intern, llama, mixed, omni),
    *(phi, pixtral, plain, qwen, sam, speech, stages, timm, vq, whisper),
)

KINDS: Mapping[str, TowerCount] = {name: count for kin in _KINS for name, count in getattr(kin, "KINDS", {}).items()}
"""Of which a whole may have any: most say by its type which tower they have."""

WHOLES: Mapping[str, WholeCount] = {name: count for kin in _KINS for name, count in kin.WHOLES.items()}

PARTS = (
    "vision_config",
    "audio_config",
    "vision_tower",
    "visual",
    "vit_config",
    "vision",
    "encoder_config",
    "sound_config",
    "speech_config",
)
"""Where files describe towers; a file of a type that is not known to have towers and has one of them is told of."""


def read_towers(
    data: Mapping[str, Any], where: str, model_type: str, text: Model, *, is_wrapper: bool
) -> tuple[int | None, list[str]]:
    """Return the parameters of the towers and projectors of a file, and what a reader of the numbers should know.

    Parameters
    ----------
    data : mapping
        The parsed file.
    where : str
        The file, for messages.
    model_type : str
        The type of the whole.
    text : Model
        The text model.
    is_wrapper : bool
        The type is one that has a text model among its parts.

    Returns
    -------
    int or None
        None where a tower cannot be counted; a note says why.
    """
    # A file may state the type of its text model at the top; the class then names the whole.
    named = stated_architecture(data) or ""
    of = model_type if model_type in WHOLES or named not in WHOLES else named
    count = WHOLES.get(of)
    if count is None:
        stated = [field for field in PARTS if isinstance(data.get(field), Mapping)]
        if not stated and not is_wrapper:
            return 0, []
        what = f" ({', '.join(stated)})" if stated else ""
        return None, [f"vision_parameters: the towers of a {model_type} are not counted{what}"]
    whole = Whole(data, where, of, text, KINDS)
    try:
        found = count(whole)
        whole.config.raise_faults()
    except (UncountedError, PlannerError) as error:
        return None, [f"vision_parameters: the towers are not counted, {str(error)[:400]}"]
    strange = whole.strange()
    notes = [f"not read, and may change the towers: {', '.join(strange)}"] if strange else []
    return found, [*whole.notes, *notes]
