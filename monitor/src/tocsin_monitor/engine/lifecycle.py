"""How signals are created, how their settings change, and how removed ones leave.

Nobody sees a removed signal anymore, but it stays in the store until the sinks know that its incidents ended. They
recognise an end by the incident through which they heard of the event. So this incident and its signal are kept as long
as the event is open, and until the end is delivered.
"""

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

from pydantic import ValidationError

from tocsin.detection import peer_features
from tocsin_monitor.as_json import incident_json
from tocsin_monitor.config import Settings, check_detector, with_known_files
from tocsin_monitor.engine.engine_state import EngineState
from tocsin_monitor.engine.incidents import close_incident
from tocsin_monitor.engine.limits import cursor_of as limits_cursor
from tocsin_monitor.engine.peers import cursor_of
from tocsin_monitor.engine.signals import AnySignal, MonitoredSignal
from tocsin_monitor.engine.stages import values_of
from tocsin_monitor.errors import RefusedError
from tocsin_monitor.fields import Shown
from tocsin_monitor.observations import MOST_FEATURES, Observation, check_name
from tocsin_monitor.rules import NO_RULES, SignalRules
from tocsin_monitor.store import SignalRow, StoreWriter, given_features


def create_from_first(state: EngineState, firsts: Iterable[Observation]) -> dict[str, str]:
    """Create the signals of these first observations; returns the reasons, by name, for those it cannot create."""
    refused: dict[str, str] = {}
    rows: list[SignalRow] = []
    for first in firsts:
        try:
            if not state.settings.engine.auto_create:
                raise RefusedError(f"there is no signal {first.signal!r}, and engine.auto_create is false")
            _check_room(state, len(rows) + 1)
            rows.append(row_of_first(state.settings, first))
        except RefusedError as error:
            refused[first.signal] = str(error)
    return refused | create(state, rows)


def create(state: EngineState, rows: Sequence[SignalRow]) -> dict[str, str]:
    """Give new signals a place and store them; returns the reasons, by name, for those without a place."""
    refused: dict[str, str] = {}
    if not rows:
        return refused
    _check_room(state, len(rows))
    stored = []
    with ExitStack() as stack:
        # Places come first: a stored signal without room would fail again at every start.
        placed = {}
        for row in rows:
            try:
                placed[row.name] = stack.enter_context(state.placed(row))
            except RefusedError as error:
                refused[row.name] = str(error)
        with state.store.transaction() as writer:
            stored = [
                writer.add_signal(**{field.name: getattr(row, field.name) for field in fields(SignalRow)[1:]})
                for row in rows
                if row.name in placed
            ]
    now = time.time_ns()
    for row in stored:
        with state.lock:
            state.signals[row.name] = MonitoredSignal(row, *placed[row.name], last_arrival=now)
        state.hub.publish("signal", {"name": row.name, "change": "created"})
    state.count()
    return refused


def _check_room(state: EngineState, more: int) -> None:
    most = state.settings.engine.max_signals
    if len(state.signals) + len(state.quarantined) + more > most:
        raise RefusedError(f"there are already {most} signals, and engine.max_signals allows no more")


def row_of_first(settings: Settings, first: Observation) -> SignalRow:
    """The signal to create for its first observation; RefusedError if it is invalid or does not fit the template."""
    template = settings.template_for(first.signal)
    features: Sequence[str] | None = first.features
    if template is not None and template.features is not None:
        features = template.features
    elif features is None and len(first.values) > 1:
        features = [f"feature {number}" for number in range(1, len(first.values) + 1)]
    row = new_row(settings, first.signal, features)
    values_of(first, row.given_features)
    return replace(row, source=first.sender)


def new_row(
    settings: Settings,
    name: str,
    features: Sequence[str] | None = None,
    detector: dict[str, Any] | None = None,
    silent_after: float | None = None,
    unit: str | None = None,
    rules: Mapping[str, Any] | None = None,
    trusted: Mapping[str, Any] | None = None,
) -> SignalRow:
    """A signal to store. Its template supplies what is not given; RefusedError if something is invalid.

    `trusted` are settings that it has already.
    """
    try:
        check_name(name)
    except ValueError as error:
        raise RefusedError(str(error)) from None
    template = settings.template_for(name)
    if features is None and template is not None:
        features = template.features
    names = check_features(["value"] if features is None else features)
    if template is not None and template.peers and given_features(names) == names:
        names = check_features(peer_features(names))
    every = None if template is None else template.every
    chosen = {**settings.detector_for(name), **(detector or {}), **({} if every is None else {"interval": every})}
    chosen = checked_settings(settings, chosen, names, settings.detector_for(name), trusted or {})
    chosen_rules = changed_rules(NO_RULES if template is None else template.rules, rules or {}, names)
    usual = None if template is None else template.silent_after
    return SignalRow(
        id=0,
        name=name,
        features=names,
        settings=chosen,
        silent_after=checked_silent_after(silent_after, usual, chosen_rules, chosen),
        unit=check_text("unit", unit) if unit is not None or template is None else template.unit,
        template=None if template is None else template.match,
        created=time.time_ns(),
        every=every,
        aggregate="mean" if template is None else template.aggregate,
        rules=chosen_rules,
    )


def checked_settings(
    settings: Settings, detector: Mapping[str, Any], features: Sequence[str], *trusted: Mapping[str, Any]
) -> dict[str, Any]:
    """Settings of a detector that somebody sent, with full paths, or RefusedError; see `with_known_files`."""
    try:
        found = with_known_files(detector, settings.engine.models, *trusted)
    except (ImportError, OSError, ValueError) as error:
        raise RefusedError(str(error)) from error
    check_settings(found, features)
    return found


def check_settings(detector: Mapping[str, Any], features: Sequence[str]) -> None:
    """Check that there can be a detector with these settings and that they can be stored, or RefusedError."""
    try:
        json.dumps(detector, allow_nan=False)
        check_detector(detector, features)
    except (TypeError, ValueError) as error:
        raise RefusedError(str(error)) from error


def checked_silent_after(
    seconds: float | None, usual: float | None, rules: SignalRules, detector: Mapping[str, Any]
) -> float | None:
    """After how many seconds a signal is silent: as given, or else as usual; RefusedError if it cannot be."""
    if seconds is not None and not (0 < seconds < math.inf):
        raise RefusedError(f"silent_after must be more than 0 seconds, got {seconds!r}")
    try:
        rules.check_zero(seconds, detector.get("interval"))
    except ValueError as error:
        raise RefusedError(str(error)) from None
    if rules.no_data_is_zero:
        return None
    return usual if seconds is None else seconds


def changed_rules(rules: SignalRules, changes: Mapping[str, Any], features: Sequence[str]) -> SignalRules:
    """A signal's rules with these changes, or RefusedError."""
    try:
        found = SignalRules.model_validate({**rules.model_dump(), **changes})
    except ValidationError as error:
        problems = [(*map(str, one["loc"][:1]), one["msg"].removeprefix("Value error, ")) for one in error.errors()]
        raise RefusedError("; ".join(": ".join(one) for one in problems)) from None
    for name in ("valid_range", "limit_high", "limit_low"):
        given = getattr(found, name)
        unknown = sorted(set(given).difference(features)) if isinstance(given, dict) else ()
        if unknown:
            raise RefusedError(f"{name} must be for the features {', '.join(features)}, got {', '.join(unknown)}")
    return found


def check_features(features: Sequence[str]) -> tuple[str, ...]:
    """The names of features, or RefusedError."""
    names = tuple(features)
    if not 0 < len(names) <= MOST_FEATURES or len(set(names)) != len(names):
        raise RefusedError(f"features must be 1 to {MOST_FEATURES} different names, got {list(names)!r}")
    for name in names:
        try:
            check_name(name)
        except ValueError as error:
            raise RefusedError(str(error).replace("a signal's name", "a feature's name")) from None
    return names


def check_text(what: str, text: str | None, longest: int = 200) -> str | None:
    """Text that every database can store, or RefusedError."""
    if text is not None and (len(text) > longest or "\0" in text or not _encodable(text)):
        raise RefusedError(f"{what} must be text of at most {longest} characters, without NUL, got {text[:40]!r}")
    return text


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Affected:
    """The signals to which a template applies, by name."""

    signals: Annotated[tuple[str, ...], Shown("Those with the settings that templates gave them so far.")]
    own: Annotated[tuple[str, ...], Shown("Those with other settings.")]


def configured(settings: Settings, row: SignalRow, detector: dict[str, Any]) -> SignalRow:
    """A signal with these settings of its detector; its template supplies those not given."""
    given = new_row(settings, row.name, row.features, detector, trusted=row.settings)
    return replace(row, settings={**given.settings, **_interval(row)})


def changed(settings: Settings, row: SignalRow, detector: dict[str, Any]) -> SignalRow:
    """A signal with these settings of its detector, and its others as they are."""
    wanted = {**row.settings, **detector, **_interval(row)}
    return replace(row, settings=checked_settings(settings, wanted, row.features, row.settings))


def templated(settings: Settings, row: SignalRow) -> SignalRow:
    """A signal with the settings that a new one of its name gets, except its features and its aggregation."""
    made = _as_new(settings, row)
    check_settings(made.settings, made.features)
    checked_silent_after(made.silent_after, None, made.rules, made.settings)
    return made


def affected(before: Settings, after: Settings, match: str, rows: Iterable[SignalRow]) -> Affected:
    """The signals to which the template with this pattern applies, by the settings after it is changed."""
    names: dict[bool, list[str]] = {True: [], False: []}
    for row in rows:
        template = after.template_for(row.name)
        if template is not None and template.match == match:
            made = _as_new(before, row)
            same = all(getattr(made, name) == getattr(row, name) for name in _OF_TEMPLATE)
            names[same].append(row.name)
    return Affected(tuple(sorted(names[True])), tuple(sorted(names[False])))


_OF_TEMPLATE = ("settings", "silent_after", "unit", "rules")


def _as_new(settings: Settings, row: SignalRow) -> SignalRow:
    template = settings.template_for(row.name)
    detector = {**settings.detector, **({} if template is None else template.detector), **_interval(row)}
    return replace(
        row,
        settings=settings.with_proposals(row.name, detector),
        silent_after=None if template is None else template.silent_after,
        unit=None if template is None else template.unit,
        template=None if template is None else template.match,
        rules=NO_RULES if template is None else template.rules,
    )


def _interval(row: SignalRow) -> dict[str, float]:
    """Stored observations were aggregated with this interval, so it stays."""
    return {} if row.every is None else {"interval": row.every}


# Seconds after which a sink has heard of the end, or never will: it may be gone for good.
LONGEST_LEAVING = 86400.0
# The signals removed in one turn. Each may have many observations.
REMOVED_AT_ONCE = 10
# More open incidents than a signal ever has.
_MANY = 1000


def leave(state: EngineState, signal: AnySignal) -> None:
    """Remove a signal: at once if no sink is to hear of it, or else as soon as they have."""
    number, now = signal.row.id, time.time_ns()
    with state.store.transaction() as writer:
        going_on = writer.incidents(signal_id=number, open=True, limit=_MANY)
        for one in going_on:
            close_incident(writer, state.events, signal, one, "removed", now)
        state.pending_imports.end(writer, number)
        stays = bool(writer.awaited([number], _since(now)))
        if stays:
            writer.leave(number)
        else:
            _remove(state, writer, number, now)
        closed = [row for one in going_on if (row := writer.incident(one.id)) is not None]
        events = [one.event for one in going_on if one.event is not None and writer.event(one.event) is not None]
    state.forget(signal)
    if stays:
        state.leaving.add(number)
    for row in closed:
        state.hub.publish("incident", incident_json(row, signal.name))
    for event in events:
        state.hub.publish("event", {"id": event})
    state.hub.publish("signal", {"name": signal.name, "change": "removed"})


def remove_leaving(state: EngineState) -> bool:
    """Remove signals for which no sink waits anymore; true if there may be more of them."""
    if not state.leaving:
        return False
    now = time.time_ns()
    with state.store.reading() as reader:
        left = sorted(state.leaving - reader.awaited(state.leaving, _since(now)))[:REMOVED_AT_ONCE]
    if left:
        with state.store.transaction() as writer:
            for number in left:
                _remove(state, writer, number, now)
        state.leaving.difference_update(left)
    return len(left) == REMOVED_AT_ONCE


def _remove(state: EngineState, writer: StoreWriter, number: int, now: int) -> None:
    events = writer.events_of_signal(number)
    writer.remove_signal(number)
    writer.remove_cursor(cursor_of(number))
    writer.remove_cursor(limits_cursor(number))
    state.events.forget(writer, events, now)


def _since(now: int) -> int:
    return now - round(LONGEST_LEAVING * 1e9)
