"""Which file of a folder describes its model."""

from __future__ import annotations

from pathlib import Path

from planner.catalogue.folders import LOG
from planner.catalogue.reading import CONFIG_NAME, PARAMS_NAME
from planner.errors import CatalogueError, listing, printable

GGUF = ".gguf"
TOWERS = "mmproj"
"""What names of files with towers for pictures or sound begin with, or hold."""

NO_DESCRIPTIONS = {
    ".index.json": "is the index of a checkpoint, which does not say what the model is",
    ".safetensors": "holds weights, which do not say what the model is",
    ".bin": "holds weights, which do not say what the model is",
    ".pt": "holds weights, which do not say what the model is",
    ".pth": "holds weights, which do not say what the model is",
}
"""Files that lie beside a description, by the end of their names."""


def check_name(path: Path) -> None:
    """Refuse a file that lies beside a description of a model.

    Raises
    ------
    CatalogueError
        With the advice to name the folder.
    """
    for end, problem in NO_DESCRIPTIONS.items():
        if path.name.endswith(end):
            raise CatalogueError(
                str(path), [f"{problem}: name its folder, {path.parent}, with the {CONFIG_NAME} in it"]
            )


def described_by(folder: Path) -> Path:
    """Return the file of a folder that describes its model; the folder itself where there is none.

    Raises
    ------
    CatalogueError
        If there are several GGUF files that may be meant.
    """
    every = sorted(path for path in folder.glob(f"*{GGUF}") if path.is_file())
    towers = [path for path in every if TOWERS in path.name.lower()]
    models = _wholes([path for path in every if path not in towers])
    configs = [folder / name for name in (CONFIG_NAME, PARAMS_NAME) if (folder / name).is_file()]
    if configs:
        if models:
            LOG.warning(
                "%s is read, not the GGUF files beside it (%s): name one to read it", configs[0], _named(models)
            )
        return configs[0]
    if len(models) > 1:
        raise CatalogueError(str(folder), [f"holds {len(models)} GGUF models, name one of them: {_named(models)}"])
    if models and towers:
        size = sum(path.stat().st_size for path in towers)
        LOG.warning("%s: towers for pictures or sound are not read, the file takes %d bytes", _named(towers), size)
    return models[0] if models else folder


def _wholes(files: list[Path]) -> list[Path]:
    """Return one file of each model: of a split one the first part."""
    if not files:
        return []
    from planner.importers.gguf import first_part  # only where there are such files

    return list(dict.fromkeys(first_part(file) for file in files))


def _named(files: list[Path]) -> str:
    return printable(listing(path.name for path in files))
