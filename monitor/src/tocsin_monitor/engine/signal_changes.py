"""How people create, configure, reset and remove signals, set their references, and change signal templates."""

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tocsin.detection import arrays_from_bytes
from tocsin_monitor.as_json import time_text
from tocsin_monitor.config import Settings, SignalTemplate, with_known_files
from tocsin_monitor.engine.changes import Changes, on_engine_thread, store_settings
from tocsin_monitor.engine.incidents import nanoseconds
from tocsin_monitor.engine.lifecycle import (
    Affected,
    affected,
    changed,
    changed_rules,
    check_features,
    check_text,
    checked_silent_after,
    configured,
    create,
    leave,
    new_row,
    templated,
)
from tocsin_monitor.engine.limits import cursor_of as limits_cursor
from tocsin_monitor.engine.replay import TAKEN, latest, value_of
from tocsin_monitor.engine.signal_templates import KnownTemplate
from tocsin_monitor.engine.signals import NOTHING, AnySignal, QuarantinedSignal, SignalDetails, SignalStatus, state_of
from tocsin_monitor.errors import RefusedError, UnknownError
from tocsin_monitor.observations import check_name
from tocsin_monitor.store import ReferenceRow, SignalRow, TemplateRow

log = logging.getLogger("tocsin.engine")

# The most observations of a reference. All signals wait while it is learned, with this many for some seconds.
MOST_OBSERVATIONS = 20_000


class SignalChanges(Changes):
    """Changes of signals, and questions to their detectors."""

    @on_engine_thread
    def create(
        self, name: str, features: Sequence[str] | None = None, detector: dict[str, Any] | None = None,
        silent_after: float | None = None, unit: str | None = None, rules: Mapping[str, Any] | None = None,
    ) -> SignalStatus:  # fmt: skip
        """Create a signal before its first observation."""
        state = self._state
        if name in state.signals or name in state.quarantined:
            raise RefusedError(f"signal {name!r} already exists")
        refused = create(state, [new_row(state.settings, name, features, detector, silent_after, unit, rules)])
        if refused:
            raise RefusedError(refused[name])
        return state.signal(name).status()

    @on_engine_thread
    def configure(
        self, name: str, features: Sequence[str] | None = None, detector: dict[str, Any] | None = None,
        silent_after: float | None = None, unit: str | None = None, rules: Mapping[str, Any] | None = None, *,
        keep: bool = False,
    ) -> SignalStatus:  # fmt: skip
        """Change a signal; None leaves a setting unchanged, `rules` has only those to change.

        Settings of the detector that are not given come from the template; with `keep`, they stay. If they change, or
        the signal was quarantined, the detector learns anew from the store.
        """
        state = self._state
        signal = state.quarantined.get(name) or state.signal(name)
        if features is not None and check_features(features) not in (signal.row.features, signal.row.given_features):
            raise RefusedError(
                f"features of {name!r} cannot change from {', '.join(signal.row.features)}, "
                f"got {', '.join(features)}: remove the signal first"
            )
        row = replace(
            signal.row,
            unit=signal.row.unit if unit is None else check_text("unit", unit),
            rules=changed_rules(signal.row.rules, rules or {}, signal.row.features),
        )
        if detector is not None:
            row = changed(state.settings, row, detector) if keep else configured(state.settings, row, detector)
        silence = checked_silent_after(silent_after, row.silent_after, row.rules, row.settings)
        return self._put(signal, replace(row, silent_after=silence))

    @on_engine_thread
    def follow_template(self, name: str) -> SignalStatus:
        """Give a signal the settings that a new one of its name gets; its features and its aggregation stay."""
        signal = self._state.quarantined.get(name) or self._state.signal(name)
        return self._put(signal, templated(self._state.settings, signal.row))

    def _put(self, signal: AnySignal, row: SignalRow) -> SignalStatus:
        """Store a signal's settings. If its detector's change, or it was quarantined, the detector learns anew."""
        state = self._state
        if isinstance(signal, QuarantinedSignal):
            self._detectors.mend(signal, row, learn=True)
        elif row.settings == signal.row.settings:
            with state.store.transaction() as writer:
                store_settings(writer, row)
            with state.lock:
                signal.row = row
        else:
            self._detectors.relearn(signal, self._detectors.fresh(row, signal.reference))
        return self._published(row.name, "configured")

    @on_engine_thread
    def reset(self, name: str) -> SignalStatus:
        """Make the detector forget everything except its reference; stored observations stay."""
        quarantined = self._state.quarantined.get(name)
        if quarantined is not None:
            self._detectors.mend(quarantined, quarantined.row, learn=False)
        else:
            self._detectors.begin_anew(self._state.signal(name))
        return self._published(name, "reset")

    @on_engine_thread
    def remove(self, name: str) -> None:
        """Remove a signal and everything that belongs to it. Sinks still hear that its incidents are over."""
        leave(self._state, self._state.quarantined.get(name) or self._state.signal(name))

    @on_engine_thread
    def state(self, name: str) -> bytes:
        """The state of a signal's detector, as `Detector.to_bytes` gives it."""
        return state_of(self._state.signal(name))

    @on_engine_thread
    def restore(self, name: str, state: bytes) -> SignalStatus:
        """Restore the detector to a state from one with the same settings.

        Observations stored since that state are not replayed. With an `interval`, they count as missing.
        """
        signal = self._state.signal(name)
        if signal.reference is not None:
            raise RefusedError(f"{name!r} has a reference, which the state would replace: remove the reference first")
        restored = self._detectors.fresh(signal.row)
        try:
            last = restored.block.fleet.put(restored.place, arrays_from_bytes(state))
        except ValueError as error:
            raise RefusedError(f"this state cannot be restored: {error}") from error
        if last is not None:
            restored.last_time = _moment(last, self._state.latest(time.time_ns()))
        newest = latest(restored.last_time, signal.last_time)
        if restored.block.fleet.interval is not None and newest != restored.last_time:
            missing = (NOTHING,) * len(signal.row.features)
            restored.block.run({restored.place: restored.detector_input([signal.last_time or 0], [missing])})
        self._detectors.replace(signal, restored, "reset")
        return self._published(name, "reset")

    @on_engine_thread
    def details(self, name: str) -> SignalDetails:
        """What a signal's detector has learned, and its audit, in which labelled faults do not count."""
        return self._state.signal(name).details()

    @on_engine_thread
    def put_reference(self, name: str, start: int, end: int, by: str = "") -> ReferenceRow:
        """Compare a signal with its observations from `start` to `end`, both included, from now on.

        A new detector learns the reference, and then takes the observations stored since. The reference stays until it
        is replaced or removed; its observations are kept as long.
        """
        signal = self._state.signal(name)
        if start > end:
            raise RefusedError(f"start must not be after end, got start {time_text(start)} and end {time_text(end)}")
        with self._state.store.reading() as reader:
            rows = reader.observations(
                signal.row.id, after=start - 1, until=end, statuses=TAKEN, limit=MOST_OBSERVATIONS + 1
            )
        if len(rows) > MOST_OBSERVATIONS:
            raise RefusedError(
                f"a reference must have at most {MOST_OBSERVATIONS} observations, got more "
                f"from start {time_text(start)} to end {time_text(end)}"
            )
        times, values = [row.time for row in rows], [value_of(row) for row in rows]
        reference = ReferenceRow(signal.row.id, start, end, len(rows), time.time_ns(), by)
        self._detectors.relearn(
            signal, self._detectors.fresh(signal.row, reference), observed=(times, values),
            change=lambda writer: writer.put_reference(reference, times, values),
        )  # fmt: skip
        self._published(name, "reference")
        return reference

    @on_engine_thread
    def remove_reference(self, name: str) -> None:
        """Compare a signal with its recent past again, starting with the newest stored observations."""
        signal = self._state.signal(name)
        if signal.reference is None:
            raise UnknownError(f"signal {name!r} has no reference")
        self._detectors.relearn(
            signal, self._detectors.fresh(signal.row), change=lambda writer: writer.remove_reference(signal.row.id)
        )
        self._published(name, "reference")

    @on_engine_thread
    def set_clock(self, name: str, to: int) -> SignalStatus:
        """Remove a signal's observations after a time, because its clock was ahead.

        They are listed as refused, and the detector learns anew from the earlier ones. New observations are then no
        longer late.
        """
        signal = self._state.signal(name)
        now = time.time_ns()
        if to > now:
            raise RefusedError(f"to must not be ahead of the clock, got {time_text(to)} at {time_text(now)}")
        if signal.reference is not None and signal.reference.end > to:
            raise RefusedError(f"the reference of {name!r} ends after {time_text(to)}: remove it first")
        with self._state.store.transaction() as writer:
            # Without a state, the next start rebuilds the signal from its observations if this is interrupted.
            taken = writer.take_out(signal.row, to, "the clock was ahead and has been corrected", now)
            writer.remove_state(signal.row.id)
            writer.remove_cursor(limits_cursor(signal.row.id))
        with self._state.lock:
            signal.forget_newest(to)
        self._detectors.relearn(signal, self._detectors.fresh(signal.row, signal.reference))
        log.warning("the clock of %r was set to %s, %d later observations are refused", name, time_text(to), taken)
        return self._published(name, "clock")

    def _published(self, name: str, change: str) -> SignalStatus:
        """Publish a change of a signal, and return its status."""
        self._state.hub.publish("signal", {"name": name, "change": change})
        return self._state.status(name)


def _moment(last: Any, latest: int) -> int:
    """The time of the last observation in a restored state."""
    if not isinstance(last, np.datetime64):
        raise RefusedError(f"the state must have observations with times, got one whose last number is {last!r}")
    moment = nanoseconds(last)
    if moment > latest:
        raise RefusedError(f"the state must not be ahead of the clock, got one from {time_text(moment)}")
    return moment


#: A limit, because each new signal is compared with all templates.
MOST_TEMPLATES = 500


class TemplateChanges(Changes):
    """Changes of stored templates. Signals that exist stay as they are."""

    @property
    def known(self) -> tuple[KnownTemplate, ...]:
        """All templates, in the order in which they are tried; from any thread."""
        return self._state.templates

    @on_engine_thread
    def use_settings(self, settings: Settings) -> None:
        """Let other settings be in force, for new signals and what is looked up each time."""
        self._state.use_settings(settings)

    @on_engine_thread
    def put(self, template: SignalTemplate, by: str = "") -> Affected:
        """Store a template in place of the one with the same pattern; returns the signals to which it applies."""
        state = self._state
        before = state.settings
        template = checked_template(before, template)
        content = template.model_dump(mode="json", exclude={"match"}, exclude_defaults=True)
        with state.store.transaction() as writer:
            writer.put_template(TemplateRow(template.match, content, time.time_ns(), by))
            rows = writer.templates()
            if len(rows) > MOST_TEMPLATES:
                raise RefusedError(f"at most {MOST_TEMPLATES} templates can be stored: remove some first")
        state.use_templates(rows)
        return affected(before, state.settings, template.match, state.rows())

    @on_engine_thread
    def remove(self, match: str) -> Affected:
        """Remove a stored template; returns the signals to which it applied.

        If the settings file has a template with the same pattern, that one applies again.
        """
        state = self._state
        before = state.settings
        with state.store.transaction() as writer:
            writer.remove_template(match)
            rows = writer.templates()
        state.use_templates(rows)
        return affected(before, before, match, state.rows())


def checked_template(settings: Settings, template: SignalTemplate) -> SignalTemplate:
    """A template that somebody sent, checked as one of a file is, and that can be stored; or RefusedError."""
    try:
        check_name(template.match)  # it is part of an address, and no other pattern matches a name
    except ValueError as error:
        raise RefusedError(str(error).replace("a signal's name", "match")) from None
    known = [one.detector for one in settings.templates if one.match == template.match]
    try:
        everything = {**settings.detector, **template.detector}
        everything = with_known_files(everything, settings.engine.models, settings.detector, *known)
        options = {name: everything[name] for name in template.detector}
        template = template.model_copy(update={"detector": options})
        settings.check_template(template)
        json.dumps(template.detector, allow_nan=False)
    except (ImportError, OSError, TypeError, ValueError) as error:
        raise RefusedError(str(error)) from None
    check_text("unit", template.unit)
    if template.features is not None:
        check_features(template.features)
    return template
