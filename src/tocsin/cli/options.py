"""Groups of command-line options that several commands share: detector settings and reading."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any

import typer

from tocsin import checks
from tocsin.cli.application import whole_number
from tocsin.data import AGGREGATES
from tocsin.detection import DetectorSettings
from tocsin.detection.settings.declaration import Setting, declared

Command = Callable[..., None]

_DETECTOR_PANEL, _READING_PANEL = "The detector", "Reading the data"
_SETTINGS = {name: one for name, one in declared(DetectorSettings).items() if one.rule.configured}
_FLAGS = {"values": "--value", "day_first": "--day-first or --month-first"}
_TEXT, _TEXTS = str | None, list[str] | None


def keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    """A parameter of a command; the annotation has its type and its option."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def in_place_of(
    group: str, parameters: Sequence[inspect.Parameter], gather: Callable[[Mapping[str, Any]], Any]
) -> Callable[[Command], Command]:
    """Replace the parameter `group` of a command with these; the command gets what `gather` makes of them."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapped(**given: Any) -> None:
            chosen = {one.name: given.pop(one.name) for one in parameters}
            command(**given, **{group: gather(chosen)})

        own = inspect.signature(command, eval_str=True).parameters.values()
        shown = [other for one in own for other in (parameters if one.name == group else [one])]
        shown = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in shown]
        wrapped.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        wrapped.__annotations__ = {one.name: one.annotation for one in shown}
        return wrapped

    return decorate


def _flag(one: Setting) -> str:
    """The flag to type. A setting given once per name uses the singular."""
    name = one.name.removesuffix("s") if one.type in (Mapping, tuple[str, ...]) else one.name
    return f"--{name.replace('_', '-')}"


def _help(one: Setting) -> str:
    text = one.help[0].upper() + one.help[1:]
    choices = f" ({', '.join(one.rule.choices)})" if one.rule.choices else ""
    default = f" Default: {one.rule.unset}." if one.default is None and one.rule.unset != "none" else ""
    return f"{text}{choices}.{default}"


def _parameter(one: Setting) -> inspect.Parameter:
    """The command parameter for this setting."""
    kind, default, more = _form(one)
    flag = _flag(one)
    if one.type is bool and one.default:
        flag = f"{flag}/--no-{flag.removeprefix('--')}"
    option = typer.Option(flag, help=_help(one), rich_help_panel=_DETECTOR_PANEL, **more)
    return keyword(one.name, default, Annotated[kind, option])


def _form(one: Setting) -> tuple[Any, Any, dict[str, Any]]:
    """The type and default of a command's parameter, and how it is parsed and shown."""
    optional = one.optional and one.default is None
    if one.type is bool:
        return bool, one.default, {}
    if one.type is int:
        read = whole_number(*(int(bound) for bound in (one.rule.least, one.rule.most) if bound is not None))
        return int | None if optional else int, one.default, {"parser": read, "metavar": "INTEGER"}
    if one.type is float:
        return float | None if optional else float, one.default, {}
    if one.type is Mapping:
        return list[str] | None, None, {"metavar": "NAME=VALUE"}
    if one.type == tuple[str, ...]:
        return list[str] | None, None, {"metavar": "NAME"}
    default = None if one.default is None else str(one.default)
    return str | None if optional else str, default, {"metavar": "NAME"} if one.rule.choices else {}


_SCORES = keyword(
    "scores",
    False,
    Annotated[
        bool,
        typer.Option(
            "--scores",
            help="The values are already nonconformity scores (larger is more anomalous): use no forecaster.",
            rich_help_panel=_DETECTOR_PANEL,
        ),
    ],
)


def _read(one: Setting, given: Any) -> Any:
    """The setting's value from the command's arguments."""
    if one.type is Mapping:
        return options_of(given or [], _flag(one))
    if one.type == tuple[str, ...]:
        return list(given or one.default)
    return number_or_text(given) if one.name == "interval" else given


def _settings(given: Mapping[str, Any]) -> dict[str, Any]:
    settings = {name: _read(one, given[name]) for name, one in _SETTINGS.items()}
    if not given["scores"]:
        return settings
    if settings["forecaster"] != _SETTINGS["forecaster"].default or settings["forecaster_options"]:
        raise typer.BadParameter("scores need no forecaster: give only one of the two.", param_hint="--scores")
    return {**settings, "forecaster": None}


def number_or_text(text: str | None) -> float | str | None:
    """The text as a number if it is one, else unchanged."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def named_texts(given: Iterable[str], flag: str) -> dict[str, str]:
    """Texts by name, given as NAME=VALUE."""
    texts = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name.strip() and equals):
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE.", param_hint=flag)
        texts[name.strip()] = value.strip()
    return texts


def options_of(given: Iterable[str], flag: str) -> dict[str, Any]:
    """The same with numbers, booleans and None where texts look like them."""
    return {name: _value(text) for name, text in named_texts(given, flag).items()}


def _value(text: str) -> Any:
    """The text as a number, boolean or None if it looks like one, else unchanged."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def takes_detector_settings(command: Command) -> Command:
    """Replace a command's parameter `settings` with the detector's options."""
    return in_place_of("settings", [*map(_parameter, _SETTINGS.values()), _SCORES], _settings)(command)


def check_settings(settings: Mapping[str, Any], *, interval_known: bool) -> None:
    """Reject settings that a detector would reject, before reading any data."""
    try:
        DetectorSettings.check(settings, interval_known=interval_known)
    except (ImportError, TypeError, ValueError) as error:
        raise typer.BadParameter(f"{error}.") from error


def _option(kind: Any, default: Any, flag: str, *, detail: bool = True, **more: Any) -> inspect.Parameter:
    """An option for reading; its argument in `read_signals` has the same name. Details have a panel of their own."""
    name = next((name for name, other in _FLAGS.items() if other.split()[0] == flag.split("/")[0]), None)
    option = typer.Option(flag, rich_help_panel=_READING_PANEL if detail else None, **more)
    return keyword(name or flag.removeprefix("--").replace("-", "_"), default, Annotated[kind, option])


_COLUMNS = (
    _option(_TEXT, None, "--time", detail=False, help="The time column. Default: detected."),
    _option(_TEXTS, None, "--value", detail=False, help="A value column; repeatable. Default: all numeric columns."),
    _option(_TEXT, None, "--id", detail=False, help="The column with the signal's name (long layout)."),
)
_SEPARATE = _option(
    bool, False, "--separate", detail=False, help="Treat each value column as a separate signal, not as a feature."
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


def takes_reading_options(
    *, columns: bool = True, sheets: bool = True, separate: bool = False
) -> Callable[[Command], Command]:
    """Replace a command's parameter `reading` with options: the arguments of `read_signals` that were given.

    A command without `columns` or `sheets` has options of its own for columns, or reads no workbooks. With `separate`,
    columns are features unless the option says otherwise.
    """
    details = [one for one in _DETAILS if sheets or one.name != "sheet"]
    chosen = [*(_COLUMNS if columns else ()), *([_SEPARATE] if separate else [])]
    return in_place_of("reading", [*chosen, *details], _given)


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """What was given: a list that is empty was not."""
    return {name: value for name, value in options.items() if value is not None and value != []}


def option_of(argument: str) -> str:
    """The option for an argument of the library."""
    return _FLAGS.get(argument, f"--{argument.replace('_', '-')}")


def in_options(thing: object) -> str:
    """A message of the library, with options in place of arguments.

    Examples
    --------
    >>> in_options(checks.Message("pump.csv: give ", checks.Argument("time_format")))
    'pump.csv: give --time-format'
    """
    return checks.message_of(thing).worded(option_of)


def text_in_options(text: str) -> str:
    """The same for a message that comes from the monitor as text, with arguments in backticks."""
    known = {one.name for one in (*_COLUMNS, _SEPARATE, *_DETAILS)} | {"most_lost", "format"}
    parts = text.split("`")
    parts[1::2] = [option_of(name) if name in known else f"`{name}`" for name in parts[1::2]]
    return "".join(parts)
