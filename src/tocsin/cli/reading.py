"""Options for reading data, shared by commands, and library messages in terms of those options."""

import re
from typing import Annotated

import typer

from tocsin.data import AGGREGATES

_PANEL = "Reading the data"
_FLAGS = {"values": "--value", "day_first": "--day-first or --month-first"}
_ARGUMENTS = (
    "time|values|id|ignore|separate|interval|every|aggregate|time_format|day_first|delimiter|decimal|missing|encoding|"
    "skip|sheet|longest_gap|most_lost|format|reference"
)
_NAMED = re.compile(rf"`({_ARGUMENTS})`|^({_ARGUMENTS})(?= must| names|=)|(?<=: )({_ARGUMENTS})(?= must)")


def in_options(message: object) -> str:
    """A library message in terms of a command: arguments become options.

    Examples
    --------
    >>> in_options("pump.csv: give `time_format`, or another `interval`")
    'pump.csv: give --time-format, or another --interval'
    """

    def option(match: re.Match[str]) -> str:
        name = next(filter(None, match.groups()))
        return _FLAGS.get(name, f"--{name.replace('_', '-')}")

    return _NAMED.sub(option, str(message))


Ignore = Annotated[
    list[str] | None, typer.Option("--ignore", help="A column to leave out; repeatable.", rich_help_panel=_PANEL)
]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="Field separator. Default: detected.", rich_help_panel=_PANEL)
]
Decimal = Annotated[
    str | None,
    typer.Option("--decimal", help="The decimal point: '.' or ','. Default: detected.", rich_help_panel=_PANEL),
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", help="For example utf-16 or latin-1. Default: detected.", rich_help_panel=_PANEL),
]
Skip = Annotated[
    int, typer.Option("--skip", min=0, help="Number of lines to skip at the start.", rich_help_panel=_PANEL)
]
Sheet = Annotated[
    str | None,
    typer.Option("--sheet", help="The sheet of an Excel workbook. Default: the first in use.", rich_help_panel=_PANEL),
]
TimeFormat = Annotated[
    str | None,
    typer.Option("--time-format", help="Format of times, such as '%d.%m.%Y %H:%M'.", rich_help_panel=_PANEL),
]
DayFirst = Annotated[
    bool | None,
    typer.Option(
        "--day-first/--month-first", help="How to read 01/02/2024. Default: detected.", rich_help_panel=_PANEL
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        metavar="NUMBER|WORD",
        help="A value that marks a missing measurement; repeatable. 'none': do not guess such values.",
        rich_help_panel=_PANEL,
    ),
]
Every = Annotated[
    str | None,
    typer.Option(
        "--every",
        metavar="DURATION",
        help="Aggregate observations over intervals of, say, 1min.",
        rich_help_panel=_PANEL,
    ),
]
Aggregate = Annotated[
    str,
    typer.Option(
        "--aggregate", metavar="NAME", help=f"How to aggregate: {', '.join(AGGREGATES)}.", rich_help_panel=_PANEL
    ),
]
