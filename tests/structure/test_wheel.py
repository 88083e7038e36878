"""The built wheel works from any folder: its catalogue and templates travel inside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from planner import __version__, catalogue

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow

# The path of the package goes to stderr: the test must not run the checkout by mistake.
RUN = "import sys, planner; print(planner.__file__, file=sys.stderr); from planner.cli import main; main(sys.argv[1:])"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of what git knows, so that nothing that only lies about here gets in."""
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],  # noqa: S607 - git is where whoever tests has it
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if not name.startswith(("tests/", "reports/")) and (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(built), str(source)]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    if result.returncode and "hatchling" in result.stderr and "No matching distribution" in result.stderr:
        pytest.skip("the build backend cannot be fetched without a network")
    assert result.returncode == 0, result.stderr
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the wheel as an installer does."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run_installed(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the installed package from a folder that has nothing to do with it."""
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    return subprocess.run(
        [sys.executable, "-P", "-c", RUN, *arguments],
        check=False,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )


def test_the_name_says_what_it_is(wheel: Path) -> None:
    assert wheel.name == f"roofline_planner-{__version__}-py3-none-any.whl"


def test_data_licence_and_notice_travel_inside(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
        metadata = archive.read(f"roofline_planner-{__version__}.dist-info/METADATA").decode()
    for kind in ("models", "hardware"):
        assert {f"planner/_data/{kind}/{name}.yaml" for name in catalogue.names(kind)} <= inside
    assert any(name.startswith("planner/_data/templates/") for name in inside)
    assert {Path(name).name for name in inside if "/licenses/" in name} == {"LICENSE", "NOTICE"}
    assert not [name for name in inside if name.startswith(("tests/", "docs/", "models/", "hardware/"))]
    assert "Name: roofline-planner" in metadata


def test_it_rates_a_model_from_another_folder(installed: Path, tmp_path: Path) -> None:
    result = run_installed(installed, tmp_path, "ops", "llama-3.1-70b", "--hardware", "h100-sxm", "--format", "json")
    assert result.returncode == 0, result.stderr
    assert result.stderr.startswith(str(installed))
    assert json.loads(result.stdout)["hardware"] == catalogue.load_hardware("h100-sxm").name


def test_it_lists_the_whole_catalogue(installed: Path, tmp_path: Path) -> None:
    result = run_installed(installed, tmp_path, "models", "--format", "json")
    assert [row["id"] for row in json.loads(result.stdout)] == catalogue.names("models")


def test_it_writes_a_report_from_another_folder(installed: Path, tmp_path: Path) -> None:
    result = run_installed(
        installed, tmp_path, "report", "llama-3.1-8b", "--hardware", "h100-sxm", "--output", "x.html"
    )
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "x.html").read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
