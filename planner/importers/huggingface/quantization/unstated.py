"""What is said of how weights are stored where no quantisation block says it: by the type in the file, and by names.

A name never changes a count. It is compared with the file, because a repository may keep its block in a file of its own, and a
config that was copied without that file would pass for one of 16 bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

EXPORTER_NAME = "hf_quant_config.json"
"""Where NVIDIA's ModelOpt writes its quantisation block, beside the config."""

PLAIN_TYPES = ("bfloat16", "float16", "float32")
"""Types that need no block: engines load them in 16 bits."""

FORMAT = re.compile(
    r"""(?<![a-z0-9])(?:
        (?:nv|mx)?fp[468] | mxint8 | float8 | u?int[2-8] | nf4 | w\d{1,2}a(?:fp|int)?\d{1,2}
        | awq | gptq | gguf | bnb | hqq | aqlm | eetq | exl[23] | auto-?round
        | [2-8][-_ ]?bits? | i?q[2-8]_[a-z0-9_]+
    )(?![a-z0-9])""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words by which names of repositories and files tell a format of stored weights, as whole words."""

GGUF = re.compile(r"gguf|i?q\d_", re.IGNORECASE)
"""Those of GGUF files, which hold their own description."""


def stated_type(*configs: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name of the field that says the type of the weights, and the type; both empty where none does."""
    for config in configs:
        for field in ("dtype", "torch_dtype"):
            if config.get(field) is not None:
                return field, str(config[field]).removeprefix("torch.")[:40]
    return "", ""


def plain_source(where: str, *configs: Mapping[str, Any]) -> str:
    """Return in words why the weights of a file without a block count in bf16."""
    field, kind = stated_type(*configs)
    if not field:
        return f"bf16, as nothing is said: neither dtype nor a quantization block in {where}"
    says = f"as {field} says" if kind == "bfloat16" else f"for the {kind} that {field} says"
    return f"bf16, {says}; no quantization block in {where}"


def type_notes(*configs: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a note where the stated type is none that weights have without a block, or takes more bytes than are counted."""
    field, kind = stated_type(*configs)
    if kind == "float32":
        return (
            "the config says float32: the files may take twice the bytes, they are counted in bf16, as engines load them",
        )
    if not kind or kind in PLAIN_TYPES:
        return ()
    return (f"{field} says {kind}, but there is no quantization block: counted in bf16, check the weight bytes",)


def name_notes(names: Iterable[str], where: str) -> tuple[str, ...]:
    """Return a note where a name tells a format of stored weights, for a file without a block.

    Parameters
    ----------
    names : iterable of str
        What the file, its folder or its repository is called, best known first.
    where : str
        The file.
    """
    for name in names:
        found = FORMAT.search(name)
        if found is not None:
            word = found[0]
            advice = (
                "name the .gguf file itself"
                if GGUF.match(word)
                else f"put the repository's {EXPORTER_NAME} beside its config.json, or take the whole config.json"
            )
            return (
                f"the name {name[:80]} says {word}, but {where} has no quantization block: counted in bf16; {advice}",
            )
    return ()
