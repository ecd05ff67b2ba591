"""The settings of a detector as options of a command."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from tocsin.cli.application import whole_number
from tocsin.conformal import MERGES
from tocsin.detection import NONCONFORMITIES
from tocsin.detection.alarm_rate import parse_alarm_rate
from tocsin.detection.fleet import DEFAULT_FORECASTER, Fleet

_PANEL = "The detector"


def _option(name: str, about: str, **more: Any) -> Any:
    return typer.Option(name, help=about, rich_help_panel=_PANEL, **more)


def _settings(
    alarm_rate: Annotated[
        str, _option("--alarm-rate", "Tolerated rate of false alarms: per observation, or such as '1/day', '2/week'.")
    ] = "0.01",
    interval: Annotated[
        str | None, _option("--interval", "Time between observations, such as '5min'. Default: found from the times.")
    ] = None,
    forecaster: Annotated[
        str, _option("--forecaster", "Which forecaster; `tocsin forecasters` lists them.")
    ] = DEFAULT_FORECASTER,
    forecaster_option: Annotated[
        list[str] | None,
        _option("--forecaster-option", "An argument of the forecaster; repeatable.", metavar="NAME=VALUE"),
    ] = None,
    scores: Annotated[
        bool, _option("--scores", "The values are nonconformity scores already (larger is stranger): no forecaster.")
    ] = False,
    horizons: Annotated[
        int, _option("--horizons", "Steps ahead.", parser=whole_number(1, 1024), metavar="INTEGER")
    ] = 15,
    nonconformity: Annotated[
        str, _option("--nonconformity", f"What alarms: {', '.join(NONCONFORMITIES)}.", metavar="NAME")
    ] = "absolute",
    scaled: Annotated[bool, _option("--scaled", "Divide errors by the forecaster's own spread.")] = False,
    light: Annotated[bool, _option("--light", "Score the mean error over the horizons: cheaper.")] = False,
    merge: Annotated[
        str, _option("--merge", f"How horizons are merged: {', '.join(MERGES)}.", metavar="NAME")
    ] = "harmonic",
    merge_features: Annotated[
        str, _option("--merge-features", "How features are merged; the same names.", metavar="NAME")
    ] = "fisher",
    recalibrate: Annotated[
        bool, _option("--recalibrate/--no-recalibrate", "Rank merged values among their own past.")
    ] = True,
    learn: Annotated[
        str, _option("--learn", "'absorb' every observation, or 'hold' back a lasting strangeness.", metavar="NAME")
    ] = "absorb",
    hold_below: Annotated[
        float | None, _option("--hold-below", "p under which an observation is held back. Default: the alarm rate.")
    ] = None,
    hold_after: Annotated[
        int, _option("--hold-after", "Strange ones still learned.", parser=whole_number(0), metavar="INTEGER")
    ] = 2,
    hold_most: Annotated[
        int, _option("--hold-most", "Hold back so many, at most.", parser=whole_number(1), metavar="INTEGER")
    ] = 200,
    hold_context: Annotated[
        bool, _option("--hold-context", "Hide what is held back from the forecaster too.")
    ] = False,
    refresh: Annotated[
        int, _option("--refresh", "Forecast after every so many only.", parser=whole_number(1, 1024), metavar="INTEGER")
    ] = 1,
    window: Annotated[
        int | None,
        _option(
            "--window", "Past errors to compare with. Default: what the alarm rate needs.",
            parser=whole_number(250, 65536), metavar="INTEGER",
        ),
    ] = None,
    learning_rate: Annotated[float, _option("--learning-rate", "How fast weights over the past are learned.")] = 0.01,
    gap: Annotated[
        int,
        _option(
            "--gap", "Observations without alarm within an incident.", parser=whole_number(0), metavar="INTEGER"
        ),
    ] = 10,
    min_deviation: Annotated[float, _option("--min-deviation", "How far off a value must be to alarm.")] = 0.0,
    min_relative_deviation: Annotated[
        float, _option("--min-relative-deviation", "The same, as a share of the forecast.")
    ] = 0.0,
    min_duration: Annotated[
        int,
        _option("--min-duration", "Observations an incident must last.", parser=whole_number(1), metavar="INTEGER"),
    ] = 1,
) -> dict[str, Any]:  # fmt: skip
    if scores and (forecaster != DEFAULT_FORECASTER or forecaster_option):
        raise typer.BadParameter("scores come without a forecaster: give one of the two.", param_hint="--scores")
    return {
        "alarm_rate": alarm_rate,
        "interval": _number_or_text(interval),
        "forecaster": None if scores else forecaster,
        "forecaster_options": forecaster_options_of(forecaster_option or []),
        "horizons": horizons,
        "nonconformity": nonconformity,
        "scaled": scaled,
        "light": light,
        "merge": merge,
        "merge_features": merge_features,
        "recalibrate": recalibrate,
        "learn": learn,
        "hold_below": hold_below,
        "hold_after": hold_after,
        "hold_most": hold_most,
        "hold_context": hold_context,
        "refresh": refresh,
        "window": window,
        "learning_rate": learning_rate,
        "gap": gap,
        "min_deviation": min_deviation,
        "min_relative_deviation": min_relative_deviation,
        "min_duration": min_duration,
    }


def _number_or_text(text: str | None) -> float | str | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def forecaster_options_of(given: list[str]) -> dict[str, Any]:
    """The arguments of a forecaster, given as NAME=VALUE."""
    options: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name.strip() and equals):
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE.", param_hint="--forecaster-option")
        options[name.strip()] = _value(value.strip())
    return options


def _value(text: str) -> Any:
    """A number, truth value or None where it looks like one, else the text itself."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def takes_detector_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a detector in place of its parameter `settings`."""
    own = inspect.signature(command, eval_str=True).parameters
    shared = inspect.signature(_settings, eval_str=True).parameters

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        settings = _settings(**{name: given.pop(name) for name in shared})
        command(**given, settings=settings)

    kept = [parameter for name, parameter in own.items() if name != "settings"]
    added = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in shared.values()]
    kept = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in kept]
    wrapped.__signature__ = inspect.Signature([*kept, *added])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in (*kept, *added)}
    return wrapped


def check_settings(settings: Mapping[str, Any], *, interval_known: bool) -> None:
    """Refuse what a detector would refuse, before any data are read."""
    trial = dict(settings)
    if trial["forecaster_options"].get("model"):
        return  # loading a model twice only to see whether it can be loaded would take too long
    try:
        if trial["interval"] is None and not interval_known and isinstance(_value(trial["alarm_rate"]), str):
            # The interval comes with the data; until then all that can be told of a budget is whether it is one.
            parse_alarm_rate(trial["alarm_rate"], interval_seconds=1e-9)
            trial["alarm_rate"] = 0.01
        Fleet(1, **trial)
    except (ImportError, TypeError, ValueError) as error:
        raise typer.BadParameter(f"{error}.") from error
