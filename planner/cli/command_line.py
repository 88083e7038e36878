"""The command line that was given, written so that it can be given again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import click
from click.core import ParameterSource


def command_line(settled: Mapping[str, str]) -> str:
    """Return the command line of the running command: what was given, and what was settled since.

    Parameters
    ----------
    settled : mapping of str to str
        Options by parameter name that the result depends on though they may not have been given, such as the date.
    """
    context = click.get_current_context()
    words = context.command_path.split()
    for parameter in context.command.params:
        name = str(parameter.name)
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if name not in settled and not is_given:
            continue
        value = str(settled.get(name, context.params[name]))
        words += [value] if isinstance(parameter, click.Argument) else [max(parameter.opts, key=len), value]
    return shlex.join(words)
