"""Chips, models and operations of worked problems, from their inputs.

Symbols are those of the sources: B batch, D hidden, F width of the FFN, S and T lengths, L layers, N query heads, K KV heads, H head
dimension, P parameters, C FLOP/s, W bytes/s, n chips (which together have n times the peak and the bandwidth).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.hardware import Hardware
from planner.memory import sequence_bytes, weight_bytes
from planner.model import FeedForward, LayerGroup, Model, SoftmaxAttention
from planner.op import Attention, Axis, Elementwise, Matmul
from planner.precision import SCHEMES, Role, Scheme, policy, stored_as
from planner.roofline import Rating, rate_op
from planner.units import FORMATS, Format

Inputs = Mapping[str, Any]

STORED = {4: "fp32", 2: "bf16", 1: "int8"}
"""Formats by the bytes of an element."""


def read_inputs(text: str) -> Inputs:
    """Read ``key=value`` pairs; whole numbers become integers.

    >>> read_inputs("B=8;C=1.5;op=add;n=2e3")
    {'B': 8, 'C': 1.5, 'op': 'add', 'n': 2000}
    """
    return {key: _number(value) for key, value in (pair.split("=") for pair in text.split(";"))}


def _number(text: str) -> int | float | str:
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if value.is_integer() else value


def chip(flops_per_s: float, bytes_per_s: float) -> Hardware:
    """Return a chip with these figures, whatever the arithmetic."""
    peak = {"value": flops_per_s, "source": "worked problem"}
    return Hardware.model_validate(
        {
            "name": "chip of a worked problem",
            "vendor": "none",
            "kind": "asic",
            "peak": {"bf16": peak, "int8": peak, "fp32": peak},
            "memory": {
                "capacity": {"value": None, "source": "not given"},
                "bandwidth": {"value": bytes_per_s, "source": "worked problem"},
            },
        }
    )


def scheme_of(weights: str = "bf16", activations: str | Format = "bf16", output: str | Format | None = None) -> Scheme:
    """Return a scheme that computes in bf16."""
    a = FORMATS[activations] if isinstance(activations, str) else activations
    o = a if output is None else FORMATS[output] if isinstance(output, str) else output
    return Scheme("worked", FORMATS[weights], a, o, "bf16")


NOTHING = Format("nothing", 0)
"""Activations that a problem leaves out."""


def matmul(rows: float, inner: int, outer: int, scheme: Scheme = SCHEMES["bf16"], **more: Any) -> Matmul:
    """Return ``[rows, inner] x [inner, outer]``."""
    axes = {"inner": Axis("inner", inner), "outer": (Axis("outer", outer),)}
    return Matmul(name="matmul", group="worked", rows=rows, scheme=scheme, **axes, **more)


def all_weights(parameters: float, rows: float = 1, weights: str = "bf16") -> Matmul:
    """Return the multiplication of each token by every parameter of a model, activations left out."""
    return matmul(rows, int(parameters), 1, scheme_of(weights, NOTHING))


def attention(
    new: float, context: float, query_heads: int = 1, *, pairs: float | None = None, dims: tuple[int, int] = (128, 128)
) -> Attention:
    """Return the attention of `new` queries to `context` cached tokens with one KV head, unmasked where no pairs are given."""
    return Attention(
        name="attention",
        group="worked",
        pairs=new * context if pairs is None else pairs,
        rows=new,
        query_heads=Axis("query_heads", query_heads),
        qk_dim=dims[0],
        v_dim=dims[1],
        fresh_tokens=0,
        fresh_heads=Axis("kv_heads", 1),
        fresh_width=0,
        cache_read=context,
        cache_written=0,
        cache_heads=Axis("kv_heads", 1),
        cache_width=sum(dims),
        cache_format=FORMATS["bf16"],
        activation_format=FORMATS["bf16"],
        compute_format="bf16",
    )


def elementwise(rows: int, read: int, written: int, scheme: str = "bf16") -> Elementwise:
    """Return a pass over activations."""
    return Elementwise(name="pass", group="worked", rows=rows, read=read, written=written, scheme=SCHEMES[scheme])


def model(hidden: int, vocab: int, *layers: LayerGroup, tied: bool = False) -> Model:
    """Return a model without norms outside its layers."""
    return Model(
        name="worked", hidden_size=hidden, vocab_size=vocab, tie_word_embeddings=tied, final_norm=False, layers=layers
    )


def heads(kv_heads: int, head_dim: int, query_heads: int | None = None) -> SoftmaxAttention:
    """Return an attention block; as many query heads as KV heads where not given."""
    return SoftmaxAttention(
        kind="gqa",
        num_attention_heads=query_heads or kv_heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
    )


def plain_model(i: Inputs) -> Model:
    """Return a model with 12 D^2 parameters in each of L layers: multi-head attention, and an FFN of 4 D without a gate."""
    width = i["D"]
    block = LayerGroup(
        repeat=i["L"],
        attention=heads(width // 64, 64),
        ffn=FeedForward(kind="plain", intermediate_size=4 * width),
        norms=0,
    )
    return model(width, i.get("V", 1), block)


def cached_model(i: Inputs) -> Model:
    """Return a model that caches as a problem says: by L, K and H, by a width, or by the bytes of a token."""
    if "kv_tok" in i:
        # One layer with one KV head: keys and values of two bytes an element.
        return model(1, 1, LayerGroup(attention=heads(1, round(i["kv_tok"] / 4))))
    width = i.get("NH") or i.get("KH") or i.get("D")
    kv_heads = i.get("K") or i.get("K_rank") or width // 128
    return model(1, 1, LayerGroup(repeat=i["L"], attention=heads(kv_heads, i.get("H", 128))))


def kv_format(i: Inputs) -> Format:
    """Return the format of the cache."""
    return FORMATS[STORED[i.get("b") or i.get("bytes") or 2]]


def stored_weights(i: Inputs) -> float:
    """Return the bytes of weights [B]."""
    for given in ("Pbytes", "bytes"):
        if given in i:
            return float(i[given])
    if "P" in i and i["bytes_w"] < 1:
        return i["P"] * stored_as(SCHEMES["w4a16"], bits=8 * i["bytes_w"]).weights.bytes_per_element
    if "P" in i:
        return float(all_weights(i["P"], weights=STORED[i["bytes_w"]]).weight_bytes)
    layers = weight_bytes(plain_model(i), policy("bf16"))
    return layers[Role.ATTENTION] + layers[Role.FFN]


def flops(i: Inputs) -> float:
    """Return the FLOPs of a problem's matmuls."""
    if "flops" in i:
        return float(i["flops"])
    if "P" in i:
        return float(all_weights(i["P"], i.get("B", 1) * i.get("T", 1)).flops)
    rows = i["B"] if "B" in i else i["T"]
    return float(matmul(rows, i["D"], i.get("F", 4 * i["D"])).flops)


def rated(i: Inputs) -> Rating:
    """Return ``[B, D] x [D, F]`` in bf16 on the problem's chip."""
    return rate_op(matmul(i["B"], i["D"], i["F"]), chip(i.get("C", 1), i.get("W", 1)))


def kv_of(i: Inputs, tokens: float) -> float:
    """Return the KV cache of one sequence [B]."""
    return float(sequence_bytes(cached_model(i), tokens, kv_format(i)))
