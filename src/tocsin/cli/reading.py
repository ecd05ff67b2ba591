"""Options for reading data, shared by commands, and library messages in terms of those options."""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from tocsin.cli.parameters import Command, in_place_of, keyword
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


def _option(kind: Any, default: Any, flag: str, *, detail: bool = True, **more: Any) -> inspect.Parameter:
    """An option for reading; its argument in `read_signals` has the same name. Details have a panel of their own."""
    name = next((name for name, other in _FLAGS.items() if other.split()[0] == flag.split("/")[0]), None)
    option = typer.Option(flag, rich_help_panel=_PANEL if detail else None, **more)
    return keyword(name or flag.removeprefix("--").replace("-", "_"), default, Annotated[kind, option])


_TEXT, _TEXTS = str | None, list[str] | None
_COLUMNS = (
    _option(_TEXT, None, "--time", detail=False, help="The time column. Default: detected."),
    _option(_TEXTS, None, "--value", detail=False, help="A value column; repeatable. Default: all numeric columns."),
    _option(_TEXT, None, "--id", detail=False, help="The column with the signal's name (long layout)."),
    _option(
        bool, False, "--separate", detail=False, help="Treat each value column as a separate signal, not as a feature."
    ),
)
_DETAILS = (
    _option(_TEXT, None, "--every", metavar="DURATION", help="Aggregate observations over intervals of, say, 1min."),
    _option(str, "mean", "--aggregate", metavar="NAME", help=f"How to aggregate: {', '.join(AGGREGATES)}."),
    _option(_TEXTS, None, "--ignore", help="A column to leave out; repeatable."),
    _option(
        _TEXTS,
        None,
        "--missing",
        metavar="NUMBER|WORD",
        help="A value that marks a missing measurement; repeatable. 'none': do not guess such values.",
    ),
    _option(_TEXT, None, "--delimiter", help="Field separator. Default: detected."),
    _option(_TEXT, None, "--decimal", help="The decimal point: '.' or ','. Default: detected."),
    _option(_TEXT, None, "--encoding", help="For example utf-16 or latin-1. Default: detected."),
    _option(int, 0, "--skip", min=0, help="Number of lines to skip at the start."),
    _option(_TEXT, None, "--sheet", help="The sheet of an Excel workbook. Default: the first in use."),
    _option(_TEXT, None, "--time-format", help="Format of times, such as '%d.%m.%Y %H:%M'."),
    _option(bool | None, None, "--day-first/--month-first", help="How to read 01/02/2024. Default: detected."),
)


def takes_reading_options(*, columns: bool = True, sheets: bool = True) -> Callable[[Command], Command]:
    """Replace a command's parameter `reading` with options: the arguments of `read_signals` that were given.

    A command without `columns` or `sheets` has options of its own for columns, or reads no workbooks.
    """
    details = [one for one in _DETAILS if sheets or one.name != "sheet"]
    return in_place_of("reading", [*(_COLUMNS if columns else ()), *details], _given)


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """What was given: a list that is empty was not."""
    return {name: value for name, value in options.items() if value is not None and value != []}
