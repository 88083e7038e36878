"""The command group, loaded lazily so that `planner --help` answers at once."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from planner import __version__
from planner.cli.catalog_option import catalog_option, held_notes

# pydantic would look through every installed package for plugins, which takes longer than a command does.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

GARBAGE_THRESHOLD = 100_000
"""Objects made before Python looks for garbage: imports make nearly as many, which all stay, and a short command is over by then."""

EXIT_BAD_INPUT = 2
EXIT_INFEASIBLE = 3
EXIT_INTERRUPTED = 130

# The help lines stand here, so that listing the commands imports none of them; a test holds them to the commands' own.
COMMANDS: dict[str, str] = {
    "ops": "Rate every operation of a step against the roofline of a chip.",
    "model": "Count a model's parameters, KV cache and weight bytes.",
    "solve": "Find the smallest batch and the fewest chips that are compute-bound.",
    "sweep": "Rate a step for every combination of models, chips, precisions, layouts, batches and contexts.",
    "report": "Write an HTML report of a model on a chip.",
    "models": "List the models of the catalogue.",
    "topology": "Explain the links between chips, and what each collective costs on them.",
    "import": "Write a model's YAML description from its published files.",
    "schema": "Print the JSON Schema of a YAML format, for editors.",
    "hardware": "List the chips of the catalogue, or show one with its sources.",
}


class LazyGroup(click.Group):
    """A group that imports a command when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # click's signature
        """Return the commands in the order in which they are learned."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"planner.cli.{cmd_name.replace('-', '_')}_command")
        command: click.Command = module.command
        if not any(parameter.name == "catalog" for parameter in command.params):
            command.params.append(catalog_option())
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and then write what the library has to say: a failure is one line on stderr."""
        with held_notes() as notes:
            result = super().invoke(ctx)
        notes.write()
        return result

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="planner")
def cli() -> None:
    """Plan the serving of large language models on the roofline of real chips.

    \b
    planner ops llama-3.1-70b --hardware h100-sxm --batch 64
    planner report llama-3.1-70b --hardware h100-sxm -o report.html
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 for an answer, 2 for bad input, 3 for an infeasible plan."""
    gc.set_threshold(GARBAGE_THRESHOLD)
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code. Errors are one line on stderr."""
    from planner.errors import InfeasibleError, PlannerError  # not needed for --help

    try:
        code = cli.main(args=None if arguments is None else list(arguments), prog_name="planner", standalone_mode=False)
    except InfeasibleError as infeasible:
        click.echo(str(infeasible))
        return EXIT_INFEASIBLE
    except PlannerError as error:
        return _fail(str(error))
    except click.ClickException as error:
        return _fail(error.format_message())
    except click.Abort:
        return EXIT_INTERRUPTED
    return code if isinstance(code, int) else 0


def _fail(message: str) -> int:
    click.echo(f"error: {' '.join(message.split())}", err=True)
    return EXIT_BAD_INPUT
