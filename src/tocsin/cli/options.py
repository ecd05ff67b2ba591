"""Detector settings as command-line options."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from tocsin.cli.application import whole_number
from tocsin.cli.parameters import Command, in_place_of, keyword
from tocsin.detection import DetectorSettings
from tocsin.detection.declaration import Setting, declared

_PANEL = "The detector"
_SETTINGS = {name: one for name, one in declared(DetectorSettings).items() if one.rule.configured}


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
    option = typer.Option(flag, help=_help(one), rich_help_panel=_PANEL, **more)
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
            rich_help_panel=_PANEL,
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


def options_of(given: Iterable[str], flag: str) -> dict[str, Any]:
    """Names and values, given as NAME=VALUE."""
    options: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name.strip() and equals):
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE.", param_hint=flag)
        options[name.strip()] = _value(value.strip())
    return options


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
