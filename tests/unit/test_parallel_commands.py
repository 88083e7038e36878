"""The command line on many chips: what is printed, and what is refused."""

import json

import pytest
from click.testing import CliRunner

from planner.cli.main import cli, run

OPS = ["ops", "llama-3.1-70b", "--hardware", "h100-sxm", "--batch", "64"]


def record_of(*arguments: str) -> dict:
    result = CliRunner().invoke(cli, [*arguments, "--format", "json"], catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.stdout)


def test_ops_of_one_of_eight_chips() -> None:
    one, eight = record_of(*OPS), record_of(*OPS, "--tp", "8")
    assert eight["parallelism"]["tp"] == 8
    assert eight["parallelism"]["chips"] == 8
    assert eight["totals"]["flops"] == pytest.approx(one["totals"]["flops"] / 8)
    sums = {op["name"]: op for op in eight["ops"] if op["kind"] == "collective"}
    assert set(sums) == {
        "embed_tokens.all_reduce",
        "o_proj.all_reduce",
        "down_proj.all_reduce",
        "lm_head.all_gather",
    }
    reduce = sums["down_proj.all_reduce"]
    # 64 tokens of 8192 elements of 2 bytes, 80 times, through a switch that adds up: each byte is sent once.
    assert (reduce["algorithm"], reduce["network_bytes"], reduce["bound"]) == ("in_switch", 80 * 2**20, "network")
    assert reduce["network_s"] == pytest.approx(80 * (2 * 0.47e-6 + 2**20 / 450e9))
    assert reduce["network_s"] == reduce["lower_s"] == reduce["upper_s"]
    assert eight["totals"]["network_s"] == pytest.approx(sum(op["network_s"] for op in eight["ops"]))
    assert one["totals"]["network_s"] == 0


def test_tokens_per_s_are_of_the_replica() -> None:
    piped = record_of(*OPS, "--tp", "4", "--pp", "2")
    assert piped["totals"]["tokens_per_s"] == pytest.approx(64 / piped["totals"]["lower_s"])
    assert (piped["parallelism"]["stage"], piped["parallelism"]["stage_layers"]) == (2, 40)
    assert {op["layers"] for op in piped["ops"]} == {1, 40}


def test_memory_of_a_chip_has_parts_and_a_verdict() -> None:
    memory = record_of(*OPS, "--tp", "8")["memory"]
    assert sum(memory["parts"].values()) == pytest.approx(memory["total_bytes"])
    assert memory["fits"] is True
    assert memory["max_batch"] > 64
    small = record_of(*OPS)["memory"]
    assert small["fits"] is False
    assert any(advice.startswith("4 chips") for advice in small["advice"])


def test_every_engine_has_rules() -> None:
    totals = {
        record_of(*OPS, "--tp", "8", "--engine", name)["memory"]["engine"] for name in ("vllm", "sglang", "trtllm")
    }
    assert totals == {"vLLM", "SGLang", "TensorRT-LLM"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tp", "7"], "tp: the 64 query_heads of Llama-3.1-70B cannot be cut over 7 chips"),
        (["--ep", "2", "--tp", "2"], "ep: Llama-3.1-70B has no routed experts"),
        (["--cp", "2"], "cp: 2 is for prefill only"),
        (["--engine", "none"], "none: unknown engine, known are sglang, trtllm, vllm"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*OPS, *arguments]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("error: ")
    assert message in error


def test_domain_without_scale_out_ends_at_its_size(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ops", "llama-3.1-70b", "--hardware", "h20", "--tp", "16"]) == 2
    assert "16 asked for, but NVLink4 of NVIDIA H20" in capsys.readouterr().err


def test_topology_explains_links_and_marks_the_cheapest() -> None:
    record = record_of("topology", "h100-sxm", "--chips", "16")
    assert (record["within_domain"]["chips"], record["between_domains"]["chips"]) == (8, 2)
    alone = record_of("topology", "h100-sxm")
    assert alone["chips"] == 8
    for operation in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_receive"):
        rows = [row for row in alone["collectives"] if row["operation"] == operation]
        for size in {row["message_bytes"] for row in rows}:
            same = [row for row in rows if row["message_bytes"] == size]
            (default,) = (row for row in same if row["default"])
            assert default["seconds"] == min(row["seconds"] for row in same)


@pytest.mark.parametrize("hardware", ["tpu-v5e", "mi300x", "m3-ultra", "xeon-spr-8480", "v100-sxm2-32gb"])
def test_topology_of_every_shape_prints(hardware: str) -> None:
    result = CliRunner().invoke(cli, ["topology", hardware], catch_exceptions=False)
    assert result.exit_code == 0
    assert "domain" in result.stdout or "alone" in result.stdout


def test_link_that_is_not_published_leaves_times_open() -> None:
    record = record_of("topology", "xeon-spr-8480")
    assert {row["seconds"] for row in record["collectives"]} == {None}
    ops = record_of("ops", "llama-3.1-70b", "--hardware", "xeon-spr-8480", "--tp", "2")
    assert ops["totals"]["lower_s"] is None
    assert any("link bandwidth is not published" in note for note in ops["notes"])
