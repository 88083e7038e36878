"""Bytes on a chip by named part, and what fits.

Covered: weights, KV cache in pages, the peak of activations, communication buffers, and what an engine keeps for itself. Left out:
fragmentation beyond pages, CUDA graphs, copies of weights while loading, speculative decoding's second model, LoRA adapters.
"""

from planner.memory.footprint import Footprint, StageBytes, footprint, kv_blocks, stage_weight_bytes
from planner.memory.plan import PARTS, MemoryPlan, memory_plan
from planner.memory.stored import CacheBytes, cache_bytes, sequence_bytes, stored_bytes, weight_bytes

__all__ = [
    "PARTS",
    "CacheBytes",
    "Footprint",
    "MemoryPlan",
    "StageBytes",
    "cache_bytes",
    "footprint",
    "kv_blocks",
    "memory_plan",
    "sequence_bytes",
    "stage_weight_bytes",
    "stored_bytes",
    "weight_bytes",
]
