"""Fetches the small files of a model from the Hugging Face hub: its config, and the index of its weights."""

from __future__ import annotations

from pathlib import Path

from planner.errors import InputError

FILES = ("config.json", "hf_quant_config.json", "model.safetensors.index.json", "pytorch_model.bin.index.json")
"""What is fetched; the first must be there."""


def fetch(name: str, *, revision: str | None = None) -> Path:
    """Return a folder with the files of a model of the hub, by its name there.

    Parameters
    ----------
    name : str
        ``organisation/model``.
    revision : str, optional
        Branch, tag or commit; the main branch where not given.

    Raises
    ------
    InputError
        If the huggingface-hub library is not installed, the hub cannot be reached, or it has no such model.
    """
    try:
        from huggingface_hub import hf_hub_download  # an optional extra
        from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError
    except ImportError:
        raise InputError(
            f"{name}: is no file here, and fetching it from the hub needs the huggingface-hub library, "
            "install it with: pip install 'roofline-planner[hub]'"
        ) from None
    config = ""
    for file in FILES:
        try:
            found = hf_hub_download(name, file, revision=revision)
        except EntryNotFoundError:
            found = ""
        except (HfHubHTTPError, OSError, ValueError) as error:
            # No network, no such model, no access, or no name of a model: the library's first line says which.
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise InputError(f"{name}: cannot be fetched from the hub: {reason}") from None
        config = config or found
    if not config:
        raise InputError(f"{name}: the hub has it, but without a config.json")
    return Path(config).parent
