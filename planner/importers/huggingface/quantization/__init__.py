"""How a checkpoint is stored: the quantisation block of a config, or of the file beside it.

`blocks` reads a block into the formats of a model's tensors; `methods`, `exporters`, `compressed`, `auto_round`, `mlx` and `torchao` read
what each library writes, in the terms of `schemes`; `modules` names the matrices as the lists of blocks do, `patterns` and `regexes` match them;
`unstated` says where the format comes from where there is no block.
"""

from planner.importers.huggingface.quantization.blocks import Elements, condense, find_block, read_quantization

__all__ = ["Elements", "condense", "find_block", "read_quantization"]
