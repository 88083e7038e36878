"""Towers of CLIP's kind: patches, learned positions, a stack of plain layers; and the models that have one."""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.counts import attention, block, convolution, linear, mlp, norm
from planner.importers.huggingface.towers.whole import TowerCount, Whole, WholeCount


def patches(config: Config) -> int:
    """Return the patches of a picture that a tower takes."""
    return (config.integer("image_size") // config.integer("patch_size")) ** 2


def stack(config: Config) -> int:
    """Return the parameters of the layers."""
    return config.integer("num_hidden_layers") * block(
        config.integer("hidden_size"), config.integer("intermediate_size")
    )


def embedding(config: Config, *, bias: bool) -> int:
    """Return the parameters of the convolution that makes patches."""
    size = config.integer("patch_size")
    return convolution(config.integer("num_channels"), config.integer("hidden_size"), size, size, bias=bias)


def clip(config: Config) -> int:
    """CLIP: a class token, norms before and after the stack."""
    hidden = config.integer("hidden_size")
    return embedding(config, bias=False) + (patches(config) + 2) * hidden + 2 * norm(hidden) + stack(config)


def plain(config: Config) -> int:
    """SigLIP without a head, as in the Idefics models."""
    hidden = config.integer("hidden_size")
    return embedding(config, bias=True) + patches(config) * hidden + norm(hidden) + stack(config)


def pooling(config: Config) -> int:
    """Return the parameters of SigLIP's head, in which one learned query attends to the patches."""
    hidden = config.integer("hidden_size")
    return hidden + block(hidden, config.integer("intermediate_size")) - norm(hidden)


def siglip(config: Config) -> int:
    """SigLIP: no class token; a head that pools by attention, where the file says so."""
    return plain(config) + (pooling(config) if config.flag("vision_use_head", default=True) else 0)


def siglip2(config: Config) -> int:
    """SigLIP 2: the file states the patches, as pictures keep their shape."""
    hidden, size = config.integer("hidden_size"), config.integer("patch_size")
    patch = linear(config.integer("num_channels") * size * size, hidden)
    pooled = pooling(config) if config.flag("vision_use_head", default=True) else 0
    return patch + config.integer("num_patches") * hidden + norm(hidden) + stack(config) + pooled


def minicpm(config: Config) -> int:
    """MiniCPM-V: within the stack, attention in windows and a network that merges each window into one patch."""
    hidden, inner = config.integer("hidden_size"), config.integer("intermediate_size")
    rows, columns = config.integers("window_kernel_size", 2, least=1) or (1, 1)
    merged = rows * columns
    network = norm(merged * hidden) + mlp(merged * hidden, merged * inner, outputs=hidden)
    return plain(config) + attention(hidden) + norm(hidden) + network


def granite_docling(config: Config) -> int:
    """Granite Docling: its connector reads some layers' outputs by one way, or by a second, finer one as well."""
    hidden, text = config.integer("hidden_size"), config.integer("out_hidden_size")
    levels, factor = len(config.listed("deepstack_visual_indexes") or ()), config.integer("scale_factor")
    fine = config.flag("use_fine_route", default=True)
    widths = [hidden * side**2 for side in ((factor, factor // 2) if fine else (factor,))]
    routes = sum(
        linear(width, text, bias=False) + levels * (norm(width) + mlp(width, text, outputs=text)) for width in widths
    )
    return plain(config) + norm(hidden) + routes + 2 * norm(text) + linear(text, text, bias=False)


def kosmos_2_5(config: Config) -> int:
    """Kosmos-2.5: flattened patches with a row and a column each, gated layers without offsets."""
    hidden = config.integer("hidden_size")
    table = 2 * config.integer("max_num_patches") * hidden
    inner = config.integer("num_attention_heads") * config.integer("head_dim")
    network = mlp(hidden, config.integer("intermediate_size"), gated=True, bias=False)
    layer = attention(hidden, inner=inner, bias=False) + network + 2 * norm(hidden, bias=False)
    patch = linear(config.integer("patch_embed_hidden_size"), hidden)
    return patch + table + config.integer("num_hidden_layers") * layer + norm(hidden, bias=False)


KINDS: Mapping[str, TowerCount] = {
    "git_vision_model": clip,
    "kosmos_2_vision_model": clip,
    "kosmos_2_5_vision_model": kosmos_2_5,
    "clip_vision_model": clip,
    "granite_docling_vision": granite_docling,
    "idefics2_vision": plain,
    "idefics3_vision": plain,
    "minicpm_ocr_vision": minicpm,
    "minicpmv4_6_vision": minicpm,
    "minicpmv4_7_vision": minicpm,
    "siglip2_vision_model": siglip2,
    "siglip_vision_model": siglip,
    "smolvlm_vision": plain,
}


def levels_joined(whole: Whole, usual: int = 1) -> int:
    """Return how many layers' outputs a projector joins; `usual` where the file does not say."""
    chosen = whole.config.get("vision_feature_layer", usual)
    return len(chosen) if isinstance(chosen, list) else usual if chosen is None else 1


def _clip_width(whole: Whole) -> int:
    return whole.part("vision_config", "clip_vision_model").integer("hidden_size")


def _siglip_width(whole: Whole) -> int:
    return whole.part("vision_config", "siglip_vision_model").integer("hidden_size")


def _llava(whole: Whole) -> int:
    """LLaVA: two matrices from the picture's width to the text's."""
    seen = whole.tower("vision_config", "clip_vision_model")
    bias = whole.config.flag("multimodal_projector_bias", default=True)
    width = _clip_width(whole) * levels_joined(whole)
    return seen + mlp(width, whole.hidden_size, bias=bias, outputs=whole.hidden_size)


def _llava_next(whole: Whole) -> int:
    """LLaVA-NeXT: an element of the text's width ends each line of patches."""
    return _llava(whole) + whole.hidden_size


def _video_llava(whole: Whole) -> int:
    """Video-LLaVA: a second tower like the first, for frames."""
    return _llava(whole) + whole.tower("vision_config", "clip_vision_model")


def _vipllava(whole: Whole) -> int:
    """ViP-LLaVA: a norm before the two matrices, which read the outputs of five layers."""
    width = _clip_width(whole) * levels_joined(whole, usual=5)
    projector = norm(width) + mlp(width, whole.hidden_size, outputs=whole.hidden_size)
    return whole.tower("vision_config", "clip_vision_model") + projector


def _gemma3(whole: Whole) -> int:
    """Gemma 3: a norm without offsets and a matrix."""
    width = _siglip_width(whole)
    seen = whole.tower("vision_config", "siglip_vision_model")
    return seen + norm(width, bias=False) + linear(width, whole.hidden_size, bias=False)


def _t5gemma2(whole: Whole) -> int:
    """T5Gemma 2: as Gemma 3, in the encoder."""
    return _gemma3(whole.within("encoder", "t5gemma2_encoder"))


def _paligemma(whole: Whole) -> int:
    """PaliGemma: one matrix."""
    vision = whole.part("vision_config", "siglip_vision_model")
    projected = whole.config.optional("projection_dim") or vision.integer("projection_dim")
    return whole.tower("vision_config", "siglip_vision_model") + linear(vision.integer("hidden_size"), projected)


def _gated(whole: Whole, inner: int) -> int:
    """Return the parameters of neighbouring patches' way through a network, one half of which gates the other."""
    width = _siglip_width(whole) * whole.integer("downsample_factor") ** 2
    return linear(width, inner) + linear(inner // 2, whole.hidden_size)


def _cohere2_vision(whole: Whole) -> int:
    """Command A Vision."""
    seen = whole.tower("vision_config", "siglip_vision_model")
    return seen + _gated(whole, whole.integer("alignment_intermediate_size"))


def _aya_vision(whole: Whole) -> int:
    """Aya Vision: a norm before the network."""
    width = _siglip_width(whole) * whole.integer("downsample_factor") ** 2
    inner = whole.integer("alignment_intermediate_size", whole.hidden_size)
    return whole.tower("vision_config", "siglip_vision_model") + norm(width) + _gated(whole, inner)


def _deepseek_vl(whole: Whole) -> int:
    """DeepSeek-VL."""
    aligner = mlp(_siglip_width(whole), whole.hidden_size, outputs=whole.hidden_size)
    return whole.tower("vision_config", "siglip_vision_model") + aligner


def _lfm2_vl(whole: Whole) -> int:
    """LFM2-VL: neighbouring patches are joined, normed where the file says so, and led through a network."""
    vision = whole.part("vision_config", "siglip2_vision_model")
    width = vision.integer("hidden_size") * whole.integer("downsample_factor") ** 2
    bias = whole.config.flag("projector_bias", default=True)
    normed = norm(width) if whole.config.flag("projector_use_layernorm", default=True) else 0
    projector = mlp(width, whole.integer("projector_hidden_size"), bias=bias, outputs=whole.hidden_size)
    return whole.tower("vision_config", "siglip2_vision_model") + normed + projector


def _idefics2(whole: Whole) -> int:
    """Idefics2: a gated network to the text's width, then latents that attend to the patches, layer by layer."""
    text, latents = whole.hidden_size, whole.part("perceiver_config", "idefics2_perceiver")
    head = latents.integer("resampler_head_dim")
    queries, keys = latents.integer("resampler_n_heads") * head, latents.integer("num_key_value_heads") * head
    layer = 3 * norm(text, bias=False) + attention(text, inner=queries, kv=keys, bias=False)
    layer += mlp(text, 4 * text, gated=True, bias=False)
    resampler = latents.integer("resampler_depth") * layer + norm(text, bias=False)
    width = whole.part("vision_config", "idefics2_vision").integer("hidden_size")
    projector = mlp(width, whole.intermediate_size, gated=True, bias=False, outputs=text)
    seen = whole.own("vision_config", "idefics2_vision")
    return seen + projector + resampler + latents.integer("resampler_n_latents") * text


def _idefics3(usual: str) -> WholeCount:
    """Idefics3: a matrix for neighbouring patches."""

    def read(whole: Whole) -> int:
        width = whole.part("vision_config", usual).integer("hidden_size") * whole.integer("scale_factor") ** 2
        return whole.own("vision_config", usual) + linear(width, whole.hidden_size, bias=False)

    return read


def _aria(whole: Whole) -> int:
    """Aria: learned queries, each of which attends to the patches, and a network."""
    width = whole.part("vision_config", "idefics3_vision").integer("hidden_size")
    numbers = whole.config.get("projector_patch_to_query_dict")
    most = [value for value in numbers.values() if isinstance(value, int)] if isinstance(numbers, Mapping) else []
    stated = whole.config.given("max_value_projector_patch_to_query_dict") or not most
    queries = whole.integer("max_value_projector_patch_to_query_dict") if stated else max(most)
    # Queries, keys and values pass through a matrix of their own before the attention's.
    across = 3 * linear(width, width, bias=False) + attention(width) + linear(width, width) + 2 * norm(width)
    network = norm(width) + mlp(width, whole.hidden_size, bias=False, outputs=whole.hidden_size)
    return whole.tower("vision_config", "idefics3_vision") + queries * width + across + network


def _minicpm(usual: str) -> WholeCount:
    """MiniCPM-V: neighbouring patches are merged, once or more often, the last time to the text's width."""

    def read(whole: Whole) -> int:
        width, times = whole.part("vision_config", usual).integer("hidden_size"), whole.integer("merger_times")
        again = norm(4 * width) + linear(4 * width, 4 * width)
        matrices = (times - 1) * linear(4 * width, width) + linear(4 * width, whole.hidden_size)
        return whole.own("vision_config", usual) + times * again + matrices

    return read


def _granite_docling(whole: Whole) -> int:
    """Granite Docling: a small network chooses the way of each picture, where the file says so."""
    width = whole.part("vision_config", "granite_docling_vision").integer("hidden_size")
    inner = whole.config.optional("density_router_hidden_size")
    router = 0 if inner is None else linear(width, 1) + norm(width) + mlp(width, inner, outputs=1)
    return whole.own("vision_config", "granite_docling_vision") + router


def _kosmos(usual: str) -> WholeCount:
    """Kosmos-2: a matrix to the text's width, where learned queries attend to the patches."""

    def read(whole: Whole) -> int:
        width, text = whole.part("vision_config", usual).integer("hidden_size"), whole.hidden_size
        return (
            whole.own("vision_config", usual)
            + linear(width, text)
            + attention(text)
            + whole.integer("latent_query_num") * text
        )

    return read


def _git(whole: Whole) -> int:
    """GIT: a matrix to the text's width, a norm, and a vector for each frame of a film."""
    width, text = whole.part("vision_config", "git_vision_model").integer("hidden_size"), whole.hidden_size
    frames = (whole.config.optional("num_image_with_embedding") or 0) * width
    return whole.own("vision_config", "git_vision_model") + linear(width, text) + norm(text) + frames


WHOLES: Mapping[str, WholeCount] = {
    "aria": _aria,
    "aya_vision": _aya_vision,
    "cohere2_vision": _cohere2_vision,
    "deepseek_vl": _deepseek_vl,
    "gemma3": _gemma3,
    "git": _git,
    "granite_docling": _granite_docling,
    "idefics2": _idefics2,
    "idefics3": _idefics3("idefics3_vision"),
    "kosmos-2": _kosmos("kosmos_2_vision_model"),
    "kosmos-2.5": _kosmos("kosmos_2_5_vision_model"),
    "lfm2_vl": _lfm2_vl,
    "llava": _llava,
    "llava_next": _llava_next,
    "llava_next_video": _llava_next,
    "llava_onevision": _llava_next,
    "minicpm_ocr": _minicpm("minicpm_ocr_vision"),
    "minicpmv4_6": _minicpm("minicpmv4_6_vision"),
    "minicpmv4_7": _minicpm("minicpmv4_7_vision"),
    "paligemma": _paligemma,
    "shieldgemma2": _gemma3,
    "smolvlm": _idefics3("smolvlm_vision"),
    "t5gemma2": _t5gemma2,
    "video_llava": _video_llava,
    "vipllava": _vipllava,
}
