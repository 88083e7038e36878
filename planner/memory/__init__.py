"""Bytes on a chip by named part, and what fits.

Covered: weights, KV cache in pages, the peak of activations, communication buffers, and what an engine keeps for itself. Left out:
fragmentation beyond pages, CUDA graphs, copies of weights while loading, speculative decoding's second model, LoRA adapters.
"""

from planner.memory.capacity import kv_blocks, kv_budget_bytes, least_chips, most_sequences, most_tokens
from planner.memory.footprint import Footprint, Parts, StageBytes, footprint, stage_weight_bytes
from planner.memory.plan import PARTS, MemoryPlan, largest, memory_plan
from planner.memory.stored import (
    MTP,
    VISION,
    CacheBytes,
    cache_bytes,
    checkpoint_bytes,
    sequence_bytes,
    stored_bytes,
    weight_bytes,
)

__all__ = [
    "MTP",
    "PARTS",
    "VISION",
    "CacheBytes",
    "Footprint",
    "MemoryPlan",
    "Parts",
    "StageBytes",
    "cache_bytes",
    "checkpoint_bytes",
    "footprint",
    "kv_blocks",
    "kv_budget_bytes",
    "largest",
    "least_chips",
    "memory_plan",
    "most_sequences",
    "most_tokens",
    "sequence_bytes",
    "stage_weight_bytes",
    "stored_bytes",
    "weight_bytes",
]
