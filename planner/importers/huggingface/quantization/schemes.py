"""What the readers of quantisation blocks share: typed access to a block's fields, and the plan that they make of it.

Scales of whole tensors and of channels are too few to count, as are GPTQ's group indices (under 0.1 % together).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.importers.huggingface.quantization.patterns import Patterns
from planner.model import Stored
from planner.model.quantization import AnyStored
from planner.precision import SCHEMES
from planner.units import LARGEST_COUNT

Block = Mapping[str, Any]


class UnknownQuantizationError(ValueError):
    """The block names a scheme that the planner does not know."""


Groups = tuple[tuple[Patterns | None, AnyStored | None], ...]
"""Modules (None for all) and how they are stored (None for 16 bits): the first that names a module decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which modules a method stores how.

    Attributes
    ----------
    groups : tuple
        How the matrices of layers are stored.
    ignored : Patterns
        Modules that stay as they were.
    head, embedding, routers : tuple
        How the LM head, the embedding and routers of experts are stored; they stay in 16 bits where no group names them.
    tables : str or StoredPart
        How tables that tokens look rows up in are stored, in models that quantise them.
    notes : tuple of str
        What the reader should know.
    """

    groups: Groups
    ignored: Patterns
    head: Groups = ()
    embedding: Groups = ()
    routers: Groups = ()
    tables: AnyStored | None = None
    notes: tuple[str, ...] = ()

    @property
    def lists(self) -> list[Patterns]:
        """Every list of modules in the plan."""
        named = [
            patterns for groups in (self.groups, self.head, self.embedding, self.routers) for patterns, _ in groups
        ]
        return list(dict.fromkeys([self.ignored, *(patterns for patterns in named if patterns is not None)]))


class Fields(Mapping[str, Any]):
    """The fields of a block, which remember whether anyone asked for them.

    Parameters
    ----------
    data : mapping
        The block, or a part of it.

    Examples
    --------
    >>> block = Fields({"bits": 4, "group": {"size": 64, "odd": 1}, "strange": [2]})
    >>> block["bits"], block["group"]["size"], list(block.unread())
    (4, 64, ['group.odd', 'strange'])
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self._asked: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._asked:
            self._asked[name] = _followed(self._data[name])
        return self._asked[name]

    def __contains__(self, name: object) -> bool:
        return name in self._data

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        return repr(self._data)

    def unread(self, path: str = "") -> Iterator[str]:
        """Yield the path of every field that nobody has asked for, that holds a value, and that may matter."""
        for name, value in self._data.items():
            if name in HARMLESS:
                continue
            if name in self._asked:
                inside = self._asked[name]
                for part in inside if isinstance(inside, list) else [inside]:
                    if isinstance(part, Fields):
                        yield from part.unread(f"{path}{name}.")
            elif value not in (None, "", [], {}):
                yield f"{path}{name}"


def _followed(value: Any) -> Any:
    """Return a value whose fields remember as well, if it has any."""
    if isinstance(value, list):
        return [_followed(item) for item in value]
    return Fields(value) if isinstance(value, Mapping) else value


# ---- reading values --------------------------------------------------------------------------------------------------


def mapping(value: Any, name: str) -> Block:
    """Return a value that must be a mapping, or raise `UnknownQuantizationError`."""
    if not isinstance(value, Mapping):
        raise UnknownQuantizationError(f"{name} is no mapping of fields")
    return value


def number(block: Block, *names: str, default: int | None = None, least: int = 1) -> int:
    """Return the whole number under the first of the names that is there, or raise `UnknownQuantizationError`."""
    name = next((name for name in names if block.get(name) is not None), names[0])
    value = block.get(name, default)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST_COUNT:
        raise UnknownQuantizationError(f"{name} {value!r} is not known, a whole number from {least} on is expected")
    return value


def text(block: Block, name: str, default: str | None = None) -> str | None:
    """Return the text under a name, `default` where there is none, or raise `UnknownQuantizationError`."""
    value = block.get(name)
    value = default if value is None else value
    if value is not None and not isinstance(value, str):
        raise UnknownQuantizationError(f"{name} {value!r} is not known, a text is expected")
    return value


LONGEST_SIDE = 30_000
"""Weights along a side of a tile that shares a scale, at most."""


def tile_elements(block: Block, name: str) -> int:
    """Return how many weights share a scale by the sides of their tile, or raise `UnknownQuantizationError`."""
    sides = block.get(name)
    if isinstance(sides, list) and len(sides) == 2:  # rows and columns
        rows, columns = sides
        if all(type(side) is int and 1 <= side <= LONGEST_SIDE for side in sides):
            return int(rows * columns)
    raise UnknownQuantizationError(f"{name} {sides!r} is not known, two whole numbers are expected")


def modules(block: Block, *names: str) -> list[Any]:
    """Return the modules under all of the names that are there; a mapping stands for its keys, a text for itself."""
    found: list[Any] = []
    for name in names:
        value = block.get(name)
        value = () if value is None else value
        if not isinstance(value, Mapping | Sequence):
            raise UnknownQuantizationError(f"{name} is no list of modules")
        found += [value] if isinstance(value, str) else value
    return found


def flag(block: Block, name: str, *, default: bool) -> bool:
    """Return true or false, or raise `UnknownQuantizationError`."""
    value = block.get(name)
    value = default if value is None else value
    if not isinstance(value, bool):
        raise UnknownQuantizationError(f"{name} {value!r} is not true or false")
    return value


def one_of(value: str | None, known: Iterable[str | None], what: str) -> str | None:
    """Return a value that is known, or raise `UnknownQuantizationError` with those that are."""
    known = tuple(known)
    if value not in known:
        raise UnknownQuantizationError(
            f"{what} {value!r} is not known ({', '.join(str(name) for name in known if name)})"
        )
    return value


def stored(precision: str, *, bits: float | None = None, group_size: int = 0, scale_bits: float = 0) -> AnyStored:
    """Return a description of weights stored in so many bits, with a scale for so many of them; short where it is the usual."""
    usual = SCHEMES[precision].weights
    width = usual.bits if bits is None else bits
    scales = scale_bits if group_size else 0
    if (width, group_size, scales) == (usual.bits, usual.block, usual.scale_bits):
        return precision
    own = None if width == usual.bits else width
    return Stored(precision=precision, bits=own, group_size=group_size, scale_bits=scales)


def weight_only(bits: float, group_size: int, scale_bits: float) -> AnyStored:
    """Return integer weights with 16-bit arithmetic."""
    return stored("w8a16" if bits == EIGHT else "w4a16", bits=bits, group_size=group_size, scale_bits=scale_bits)


def width(bits: int) -> int:
    """Return the bits of a packed weight, or raise `UnknownQuantizationError`."""
    if not 1 <= bits <= EIGHT:
        raise UnknownQuantizationError(f"{bits!r} bits are not known (1 to 8)")
    return bits


EIGHT, FOUR = 8, 4
FLOAT16 = 16
"""Bits of the scale of a group where a method does not say otherwise."""


SKIPPED = ("modules_to_not_convert", "ignored_layers", "llm_int8_skip_modules", "skip_modules")
"""What the methods of the transformers library call their list of exceptions."""


def everywhere(how: AnyStored | None, block: Block, *, head: Groups = ()) -> Plan:
    """Return the plan of a method that stores every matrix of the layers alike, but for its exceptions."""
    return Plan(groups=((None, how),), ignored=Patterns(modules(block, *SKIPPED)), head=head)


_NAMES = """
_load_in_4bit _load_in_8bit act_group_aware act_order activation_scale_ub activation_scheme actorder algo_config amp
autoround_version axis backend batch_size block_name_to_quantize bnb_4bit_compute_dtype bnb_4bit_quant_storage
bnb_4bit_quant_type bnb_4bit_use_double_quant cache_block_outputs calibration ch_axis channel_wise codebook damp_auto_increment damp_percent
data_format dataset dequantize desc_act device disable_exllama do_fuse dynamic enable_minmax_tuning
enable_norm_bias_tuning enable_quanted_input enable_torch_compile exllama_config export fuse_max_seq_len
global_compression_ratio gradient_accumulate_steps has_zero_point input_activations input_tensors is_dynamic
is_marlin_format is_scale_quant iters kv_cache_quant_algo kv_cache_scheme linear_class
llm_int8_enable_fp32_cpu_offload llm_int8_has_fp16_weight llm_int8_threshold low_gpu_mem_usage lr max_input_length meta minmax_lr
model_file_base_name model_name_or_path model_seqlen module_name_preceding_first_block modules_to_fuse mse
mx_element_dtype not_use_best_mse nsamples observer observer_cls observer_kwargs offload_meta optimize out_scales
output_activations output_tensors pack_dtype pack_method packing_format pad_token_id pre_quant_scale producer
quant_library quant_method quant_mode quant_round quantization_status rms_norm_eps round_method round_zero
run_compressed sampler scale_calculation_mode scale_fmt scale_type seqlen set_inductor_config smoothquant_val
softmax_quant_spec sparsity_config static_groups sym symmetric to_quant_block_names tokenizer transform_config
true_sequential use_cuda_fp16 use_exllama use_quant_input use_rms_norm v2 version view_as_float zero_point_type
zp_dtype
"""

HARMLESS = frozenset(_NAMES.split())
"""Fields of blocks that change no stored byte: how weights were calibrated, what tools wrote them, which kernels run them.

Some are read where they matter, but what stands inside them does not.

From the configuration classes of transformers 5.24.0, compressed-tensors 0.12, AutoRound, GPTQModel, ModelOpt and Quark.
"""
