"""Asks one peer for decode step times of Llama-3.1-8B in bf16 on one H100, and prints points, seconds and two answers as JSON.

`peers.py` runs it with the Python that the peers are installed in; nothing of the planner is imported. Each peer is asked by the
fastest way in one process that its documentation names: what can be prepared once is prepared before the clock starts.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

SHOWN = ((16, 4096), (64, 4096))
"""Batch and context of the points whose answers are shown."""

CONTEXTS = range(1024, 131072)
"""Contexts that are asked one after the other until the time is up: no point is asked twice, so that none comes from a cache."""

BATCHES = tuple(range(1, 257))
FEW = tuple(range(1, 65, 16))
"""Batches of a peer that takes a tenth of a second for each."""

Row = Callable[[tuple[int, ...], int], "list[float | None]"]
"""Step times in seconds of some batches after one context; None where a peer has no such answer."""

LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
    "max_position_embeddings": 131072,
}
"""config.json of Llama-3.1-8B, what counts here of it."""


def genz() -> Row:
    """GenZ: `decode_moddeling`, a call a point, on a system described as its README shows; efficiency 1."""
    decode = importlib.import_module("GenZ").decode_moddeling
    chip = {"Flops": 989, "Memory_size": 80, "Memory_BW": 3350, "ICN": 450, "real_values": True}

    def row(batches: tuple[int, ...], context: int) -> list[float | None]:
        asked = {"input_tokens": context, "Bb": 1, "system_name": chip, "bits": "bf16", "model_profilling": False}
        times: list[float | None] = []
        for batch in batches:
            try:
                result = decode(model="meta-llama/Llama-3.1-8B", batch_size=batch, **asked)
            except ValueError:  # it does not fit: the tool says so in place of a time
                times.append(None)
            else:
                times.append(float(result["Latency"]) / 1e3)
        return times

    return row


def servcalc() -> Row:
    """servcalc: `estimate`, a call a context with all batches; static batching, and efficiencies of 1 in place of its priors."""
    module = importlib.import_module("servcalc")
    one = module.Curve(points=((1, 1.0, 1.0, 1.0),))
    bounds = module.Calibration(bw_util=one, mfu=one, overhead_ms=(0.0, 0.0, 0.0), source="bounds")
    profile = module.profiles.hf(kv_realloc=False)

    def row(batches: tuple[int, ...], context: int) -> list[float | None]:
        # Two tokens are generated: the first by the prompt's pass, the second by a decode step after prompt_len + 1 tokens.
        workload = module.Workload(prompt_len=context - 1, gen_len=2, concurrency=batches)
        result = module.estimate(LLAMA, "H100 80GB", workload=workload, profile=profile, calibration=bounds)
        return [point.itl_ms.mid / 1e3 for point in result.points]

    return row


def ridgepoint() -> Row:
    """ridgepoint: `fit`, a call a context. It knows no batch: its speed is that of one sequence, with a measured efficiency."""
    fit = importlib.import_module("ridgepoint").fit

    def row(batches: tuple[int, ...], context: int) -> list[float | None]:
        said = json.loads(fit("llama-3-8b", "h100-80gb", ctx=context, as_json=True))
        alone = 1 / said["speed"]["decode_tok_s"]["best"]
        return [alone if batch == 1 else None for batch in batches]

    return row


def aiconfigurator() -> Row:
    """aiconfigurator: `EngineHandle` of its SDK, compiled once for vLLM, a call a point; interpolates kernels' measured times."""
    engine = importlib.import_module("aiconfigurator.sdk.engine")
    handle = engine.EngineHandle.compile("meta-llama/Meta-Llama-3.1-8B", "h100_sxm", "vllm", tp_size=1)
    predict = handle.predict_decode_latency

    def row(batches: tuple[int, ...], context: int) -> list[float | None]:
        return [predict(batch, context) / 1e3 for batch in batches]

    return row


def llm_analysis() -> Row:
    """llm-analysis: `LLMAnalysis.inference`, a call a point, with a KV cache; efficiencies of 1. It times the prompt's pass as well."""
    module = importlib.import_module("llm_analysis.analysis")
    config = importlib.import_module("llm_analysis.config")
    model = config.ModelConfig(
        name="llama-3.1-8b",
        num_layers=32,
        n_head=32,
        hidden_dim=4096,
        vocab_size=128256,
        max_seq_len=131072,
        num_key_value_heads=8,
        ffn_embed_dim=14336,
        expansion_ratio=3.5,
    )
    chip, formats = config.get_gpu_config_by_name("h100-sxm-80gb"), config.get_dtype_config_by_name("w16a16e16")
    analysis = module.LLMAnalysis(model, chip, formats, flops_efficiency=1.0, hbm_memory_efficiency=1.0)

    def row(batches: tuple[int, ...], context: int) -> list[float | None]:
        times: list[float | None] = []
        for batch in batches:
            try:
                said = analysis.inference(batch_size_per_gpu=batch, seq_len=context, num_tokens_to_generate=1)
            except AssertionError:  # it does not fit: the tool says so in place of a time
                times.append(None)
            else:
                times.append(float(said["decode_latency"]))
        return times

    return row


PEERS: dict[str, tuple[str, Callable[[], Row], tuple[int, ...]]] = {
    "aiconfigurator": ("aiconfigurator", aiconfigurator, BATCHES),
    "servcalc": ("servcalc", servcalc, BATCHES),
    "llm-analysis": ("llm-analysis", llm_analysis, FEW),
    "genz": ("genz-llm", genz, FEW),
    "ridgepoint": ("ridgepoint", ridgepoint, (1,)),
}
"""Each peer: its name on PyPI, how it is asked, and the batches of a row."""


def _rows(ask: Row, batches: tuple[int, ...], seconds: float) -> Iterator[int]:
    """Ask row by row until the time is up, and yield the points of each."""
    end = time.perf_counter() + seconds
    for context in CONTEXTS:
        yield len(ask(batches, context))
        if time.perf_counter() > end:
            return


def main() -> None:
    """Time the peer that is named, for about the seconds that are named."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    name, seconds = sys.argv[1], float(sys.argv[2])
    package, make, batches = PEERS[name]
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        print(json.dumps({"missing": package}))
        return
    ask = make()
    answers = [ask((batch,), context)[0] for batch, context in SHOWN]
    wall, cpu = time.perf_counter(), time.process_time()
    points = sum(_rows(ask, batches, seconds))
    taken = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    result: dict[str, Any] = {"version": version, "points": points, "answers_s": answers, **taken}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
