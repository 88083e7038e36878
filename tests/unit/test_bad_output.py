"""Results that cannot be written or printed: nothing half-written, and no traceback."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from refusals import (
    BOMB,
    COMMAND,
    CONFIG,
    DEEP,
    MODEL,
    ROOT,
    Refused,
    assert_one_line,
    process,
    reading,
    write,
)

from planner.cli.main import run

# ---- results ---------------------------------------------------------------------------------------------------------

WRITING: list[tuple[str, ...]] = [
    ("model", "llama-3.1-70b", "--format", "json"),
    ("hardware", "h100-sxm", "--format", "csv"),
    ("schema", "model"),
    ("import", "config.json"),
]
each_writing = pytest.mark.parametrize("arguments", WRITING, ids=lambda arguments: arguments[0])


@each_writing
def test_output_to_a_folder(folder: Path, refused: Refused, arguments: tuple[str, ...]) -> None:
    write(folder, "config.json", json.dumps(CONFIG))
    (folder / "out").mkdir()
    assert "out is a folder, name a file" in refused(*arguments, "--output", "out")


@each_writing
def test_output_below_a_file(folder: Path, refused: Refused, arguments: tuple[str, ...]) -> None:
    write(folder, "config.json", json.dumps(CONFIG))
    write(folder, "file", "text")
    assert "--output: file/out.json cannot be written" in refused(*arguments, "--output", "file/out.json")


@each_writing
@pytest.mark.parametrize("name", ["a\0b", "", "x" * 300])
def test_output_to_a_name_that_no_file_has(
    folder: Path, refused: Refused, arguments: tuple[str, ...], name: str
) -> None:
    write(folder, "config.json", json.dumps(CONFIG))
    assert "--output" in refused(*arguments, "--output", name)


@each_writing
def test_output_where_nothing_may_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused, arguments: tuple[str, ...]
) -> None:
    write(folder, "config.json", json.dumps(CONFIG))
    write(folder, "out.json", "kept")

    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", refuse)
    assert "out.json cannot be written: Permission denied" in refused(*arguments, "--output", "out.json")


@each_writing
def test_a_disk_that_is_full_leaves_what_was_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused, arguments: tuple[str, ...]
) -> None:
    write(folder, "config.json", json.dumps(CONFIG))
    write(folder, "out.json", "kept")

    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    assert "No space left on device" in refused(*arguments, "--output", "out.json")


@each_writing
def test_output_into_a_folder_that_is_not_there_yet(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    write(folder, "config.json", json.dumps(CONFIG))
    assert run(arguments) == 0
    printed = capsys.readouterr().out
    assert run([*arguments, "--output", "new/deep/out"]) == 0
    assert capsys.readouterr().out == ""
    assert (folder / "new/deep/out").read_text() == printed
    assert [path.name for path in (folder / "new/deep").iterdir()] == ["out"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("model", "nothing.yaml"),
        ("model", "llama-3.1-70b", "--precision", "int9"),
        ("ops", "llama-3.1-70b", "--hardware", "nothing"),
        ("ops", "llama-3.1-70b", "--hardware", "h100-sxm", "--batch", "0"),
        ("hardware", "nothing"),
        ("import", "nothing.json"),
        ("schema", "nothing"),
    ],
)
def test_a_failure_leaves_an_existing_file_as_it_was(
    folder: Path, refused: Refused, arguments: tuple[str, ...]
) -> None:
    write(folder, "out", "kept")
    refused(*arguments, "--output", "out")
    refused(*arguments, "--output", "new/out")
    assert (folder / "out").read_text() == "kept"


# ---- processes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["a: " + "[" * DEEP, "name: !!python/object/apply:os.system [touch owned]", "\0", BOMB]
)
def test_a_process_ends_with_one_line(folder: Path, text: str) -> None:
    path = write(folder, "file.yaml", text)
    for arguments in (reading(path, "model")[1], reading(path, "hardware")[0]):
        done = process(*arguments, cwd=folder)
        assert_one_line(done.returncode, done.stdout, done.stderr)
        assert [entry.name for entry in folder.iterdir()] == ["file.yaml"]


@pytest.mark.parametrize("arguments", [("models",), ("hardware",), ("hardware", "h100-sxm", "--format", "json")])
def test_a_closed_pipe_is_no_error(arguments: tuple[str, ...]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(60) == 0


def test_a_closed_terminal_is_no_traceback() -> None:
    """With standard output closed, as by a shell's `>&-`, there is nowhere to write to."""
    done = process("models", preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_is_one_line() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "models"], check=False, stdout=full, stderr=subprocess.PIPE, text=True, env=environment
        )
    assert_one_line(done.returncode, "", done.stderr)
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize("output_format", ["table", "json", "csv", "md"])
def test_text_that_the_terminal_cannot_show(folder: Path, output_format: str) -> None:
    path = write(folder, "model.yaml", yaml.safe_dump({**MODEL, "name": "模型 é"}, allow_unicode=True))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(
        [*COMMAND, "model", path, "--format", output_format], check=False, capture_output=True, env=environment
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"?? \xe9" in done.stdout
