"""Broken files: YAML and JSON that cannot be read, that try to do harm, or that are no files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml
from refusals import (
    BOMB,
    CHIP,
    CONFIG,
    DEEP,
    MODEL,
    Refused,
    assert_one_line,
    reading,
    write,
)

from planner.cli.main import run

# ---- texts -----------------------------------------------------------------------------------------------------------

MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}]}}\n" for i in range(1, 12))
BAD_YAML: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "is empty"),
    "blank": (" \n\n\t\n".replace("\t", " "), "is empty"),
    "comment": ("# nothing\n", "a mapping of fields is expected"),
    "only marks": ("---\n...\n", "a mapping of fields is expected"),
    "two documents": ("a: 1\n---\nb: 2\n", "line 2"),
    "list": ("[1, 2]", "holds a list"),
    "text": ("hello", "holds a str"),
    "number": ("5", "holds a int"),
    "null": ("null", "a mapping of fields is expected"),
    "open bracket": ("name: [1, 2\n", "not YAML"),
    "open quote": ('name: "x\n', "not YAML"),
    "tab": ("a:\n\t- b\n", "not YAML"),
    "bad indent": ("a: 1\n  b: 2\n", "not YAML"),
    "unknown alias": ("a: *b\n", "not YAML"),
    "bomb": (BOMB, "unfolds into more than"),
    "bomb of merges": (MERGES, "unfolds into more than"),
    "alias to itself": ("a: &a [*a]\n", "an alias refers to itself"),
    "mapping in itself": ("a: &a {b: *a}\n", "an alias refers to itself"),
    "merge of itself": ("&a\n<<: *a\nname: x\n", "an alias refers to itself"),
    "object": ("name: !!python/object/apply:os.system [echo owned > owned]\n", "not YAML that holds plain data"),
    "new object": ("name: !!python/object/new:os.system [echo owned > owned]\n", "not YAML that holds plain data"),
    "python name": ("name: !!python/name:os.system\n", "not YAML that holds plain data"),
    "own tag": ("name: !secret x\n", "not YAML that holds plain data"),
    "deep list": ("a: " + "[" * DEEP + "]" * DEEP, "nest"),
    "deep mapping": ("{a: " * DEEP + "1" + "}" * DEEP, "nested too deeply"),
    "deep enough": ("a: " + "[" * 200 + "]" * 200, "nested too deeply"),
    "deep dashes": ("a:\n" + "- " * 3000 + "x\n", "nested too deeply"),
    "huge number": ("hidden_size: 1" + "0" * 5000 + "\n", "cannot be read"),
    "huge hexadecimal number": ("hidden_size: 0x1" + "0" * 5000 + "\n", "hidden_size: "),
    "huge year": ("name: 99999-01-01\n", ""),
    "duplicate": ("name: a\nname: b\n", "'name' stands twice"),
    "duplicate inside": ("layers: [{repeat: 1, repeat: 2}]\n", "'repeat' stands twice"),
    "key no": ("no: 1\n", "quote it"),
    "key number": ("1: 1\n", "quote it"),
    "key list": ("? [a]\n: 1\n", "quote it"),
    "key null": ("? \n: 1\n", "quote it"),
    "date out of range": ("name: 2024-99-99\n", "cannot be read"),
    "bad binary": ("name: !!binary x\n", "not YAML"),
    "bytes": (b"\x89PNG\r\n\x1a\n\x00\x00", "not UTF-8"),
    "nul": ("name: a\0b\n", "not YAML"),
    "control": ("name: a\x07b\n", "not YAML"),
    "utf-16": ("name: x\n".encode("utf-16"), "not UTF-8"),
    "latin-1": ("name: Mod\xe8le\n".encode("latin-1"), "not UTF-8"),
    "surrogate": ('name: "\\ud800"\n', ""),
    "only a mark": (b"\xef\xbb\xbf", "is empty"),
    "too large": ("name: x\n#" + "x" * (5 << 20), "at most"),
    "merge of text": ("<<: text\nname: x\n", "not YAML"),
    "set": ("name: !!set {a, b}\n", ""),
    "omap": ("name: !!omap [a: 1]\n", ""),
    "bad int": ("hidden_size: !!int x\n", ""),
    "bad float": ("hidden_size: !!float x\n", ""),
    "bad bool": ("tie_word_embeddings: !!bool x\n", ""),
    "bad date": ("name: !!timestamp x\n", ""),
    "mapping as number": ("hidden_size: !!int {a: 1}\n", ""),
}


@pytest.mark.parametrize("kind", ["model", "hardware"])
@pytest.mark.parametrize("name", BAD_YAML)
def test_broken_yaml(folder: Path, refused: Refused, name: str, kind: str) -> None:
    text, words = BAD_YAML[name]
    path = write(folder, "file.yaml", text)
    for arguments in reading(path, kind):
        message = refused(*arguments)
        assert message.startswith(f"error: {path}: ")
        assert words in message


BAD_JSON: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "is empty"),
    "open": ('{"a": 1', "line 1"),
    "trailing comma": ('{"a": 1,\n}', "line 2"),
    "two": ('{"a": 1}{"b": 2}', "not JSON"),
    "list": ('[{"model_type": "llama"}]', "holds a list"),
    "deep list": ('{"a": ' + "[" * DEEP + "]" * DEEP + "}", "nested too deeply"),
    "deep mapping": ('{"a": ' * DEEP + "1" + "}" * DEEP, "nested too deeply"),
    "huge number": ('{"model_type": "llama", "hidden_size": 1' + "0" * 5000 + "}", "cannot be read"),
    "duplicate": ('{"model_type": "llama", "model_type": "mistral"}', "'model_type' stands twice"),
    "duplicate inside": ('{"a": {"b": 1, "b": 2}}', "'b' stands twice"),
    "bytes": (b'{"a": "\xff\xfe"}', "not UTF-8"),
    "control": ('{"a": "\x01"}', "not JSON"),
    "nan": ('{"model_type": "llama", "hidden_size": NaN}', "hidden_size"),
    "infinity": ('{"model_type": "llama", "hidden_size": Infinity}', "hidden_size"),
    "overflow": ('{"model_type": "llama", "hidden_size": 1e999}', "hidden_size"),
    "neither": ('{"a": 1}', "a: unknown field"),
    "no architecture": ('{"architectures": []}', ""),
    "architecture of numbers": ('{"architectures": [5]}', ""),
    "architecture of a list": ('{"architectures": [["x"]]}', ""),
    "architectures as text": ('{"architectures": "Llama"}', ""),
    "type as a list": ('{"model_type": ["llama"]}', "model_type"),
    "surrogate": ('{"model_type": "llama", "name": "\\ud800"}', "stands for no character"),
}


@pytest.mark.parametrize("name", BAD_JSON)
def test_broken_json(folder: Path, refused: Refused, name: str) -> None:
    text, words = BAD_JSON[name]
    path = write(folder, "config.json", text)
    for arguments in reading(path, "model"):
        message = refused(*arguments)
        assert message.startswith(f"error: {path}: ")
        assert words in message


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1e12", "'1e12'"),  # PyYAML wants a sign in the exponent: without one it is text
        ("08", "'08'"),  # no octal number, so text
        ("no", "False"),
        ("12e03", "'12e03'"),
        ("0x40x", "'0x40x'"),
        ("~", "None"),
        ("2024-01-01", "a date"),
        (".nan", "nan"),
        (".inf", "inf"),
    ],
)
def test_traps_of_yaml_are_told_as_they_were_read(folder: Path, refused: Refused, text: str, shown: str) -> None:
    """In a field that must be a whole number each of them is refused, with what it was read as."""
    broken = yaml.safe_dump({**MODEL, "vocab_size": "PLACE"}).replace("PLACE", text)
    message = refused("model", write(folder, "model.yaml", broken))
    assert f"vocab_size: {shown} is wrong" in message


@pytest.mark.parametrize(("text", "read"), [("1_000", 1000), ("0o10", None), ("010", 8), ("0x10", 16), ("1:30", 90)])
def test_numbers_of_yaml_that_are_read_as_numbers(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, read: int | None
) -> None:
    """What YAML 1.1 has as a number is one, to whichever base; nothing is guessed beyond that."""
    path = write(folder, "model.yaml", yaml.safe_dump({**MODEL, "vocab_size": "PLACE"}).replace("PLACE", text))
    code = run(["model", path, "--format", "json"])
    out = capsys.readouterr().out
    if read is None:
        assert code == 2
    else:
        assert json.loads(out)["embedding_parameters"] == read * 64


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", ["config.json", "config.txt", "model.yml"])
def test_a_byte_order_mark_and_the_name_of_the_file_do_not_matter(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, mark: bytes
) -> None:
    path = write(folder, name, mark + json.dumps(CONFIG).encode())
    assert run(["model", path, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["layers"] == 2


@pytest.mark.parametrize("text", [json.dumps(CONFIG), yaml.safe_dump(CHIP)])
def test_one_kind_of_file_in_place_of_the_other(folder: Path, refused: Refused, text: str) -> None:
    path = write(folder, "file.yaml", text)
    kind = "model" if "memory" in text else "hardware"
    for arguments in reading(path, kind):
        assert path in refused(*arguments)


# ---- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["model", "hardware"])
@pytest.mark.parametrize(
    ("path", "words"), [(".", "folder"), ("/dev/null", "no regular file"), ("nothing/", "no such")]
)
def test_what_is_no_file(refused: Refused, path: str, words: str, kind: str) -> None:
    for arguments in reading(path, kind):
        assert words in refused(*arguments)


def test_a_pipe_is_not_waited_for(folder: Path, refused: Refused) -> None:
    os.mkfifo(folder / "pipe.yaml")
    assert "no regular file" in refused("model", str(folder / "pipe.yaml"))


def test_a_link_to_itself(folder: Path, refused: Refused) -> None:
    (folder / "loop.yaml").symlink_to(folder / "loop.yaml")
    assert "loop.yaml" in refused("model", str(folder / "loop.yaml"))


def test_a_dangling_link(folder: Path, refused: Refused) -> None:
    (folder / "gone.yaml").symlink_to(folder / "nothing.yaml")
    assert "no such file" in refused("model", str(folder / "gone.yaml"))


def unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every file unreadable: the superuser, who runs tests in containers, could read those that the mode forbids."""

    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)


@pytest.mark.parametrize("kind", ["model", "hardware"])
def test_a_file_that_may_not_be_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    path = write(folder, "file.yaml", "name: x")
    unreadable(monkeypatch)
    for arguments in reading(path, kind)[:1]:
        code = run(arguments)
        captured = capsys.readouterr()
        assert_one_line(code, captured.out, captured.err)
        assert f"{path}: cannot be read: Permission denied" in captured.err
