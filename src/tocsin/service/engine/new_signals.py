"""New signals: their rows, from what is given and from the settings, and how they join the others."""

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from tocsin.service.config import Settings, check_detector
from tocsin.service.engine.engine_state import EngineState
from tocsin.service.engine.signals import MonitoredSignal
from tocsin.service.engine.stages import values_of
from tocsin.service.errors import RefusedError
from tocsin.service.observations import MOST_FEATURES, Observation, check_name
from tocsin.service.store import SignalRow


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
                writer.add_signal(
                    name=row.name, features=row.features, settings=row.settings, silent_after=row.silent_after,
                    unit=row.unit, template=row.template, created=row.created, every=row.every,
                    aggregate=row.aggregate, source=row.source,
                )
                for row in rows
                if row.name in placed
            ]  # fmt: skip
    now = time.time_ns()
    for row in stored:
        with state.lock:
            state.signals[row.name] = MonitoredSignal(row, *placed[row.name], last_arrival=now)
        state.hub.publish("signal", {"name": row.name, "change": "created"})
    state.count()
    return refused


def _check_room(state: EngineState, more: int) -> None:
    most = state.settings.engine.max_signals
    if len(state.signals) + len(state.aside) + more > most:
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
    values_of(first, row.features)
    return replace(row, source=first.sender)


def new_row(
    settings: Settings,
    name: str,
    features: Sequence[str] | None = None,
    detector: dict[str, Any] | None = None,
    silent_after: float | None = None,
    unit: str | None = None,
) -> SignalRow:
    """A signal to store. Its template supplies what is not given; RefusedError if something is invalid."""
    try:
        check_name(name)
    except ValueError as error:
        raise RefusedError(str(error)) from None
    check_silent_after(silent_after)
    template = settings.template_for(name)
    if features is None and template is not None:
        features = template.features
    names = check_features(["value"] if features is None else features)
    every = None if template is None else template.every
    chosen = {**settings.detector_for(name), **(detector or {}), **({} if every is None else {"interval": every})}
    check_settings(chosen, names)
    return SignalRow(
        id=0,
        name=name,
        features=names,
        settings=chosen,
        silent_after=silent_after if silent_after is not None or template is None else template.silent_after,
        unit=check_text("unit", unit) if unit is not None or template is None else template.unit,
        template=None if template is None else template.match,
        created=time.time_ns(),
        every=every,
        aggregate="mean" if template is None else template.aggregate,
    )


def check_settings(detector: Mapping[str, Any], features: Sequence[str]) -> None:
    """Check that there can be a detector with these settings and that they can be stored, or RefusedError."""
    try:
        json.dumps(detector, allow_nan=False)
        check_detector(detector, features)
    except (TypeError, ValueError) as error:
        raise RefusedError(str(error)) from error


def check_silent_after(seconds: float | None) -> None:
    """Check the time after which a signal is silent, or RefusedError."""
    if seconds is not None and not (0 < seconds < math.inf):
        raise RefusedError(f"silent_after must be more than 0 seconds, got {seconds!r}")


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
