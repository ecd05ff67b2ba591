"""One turn of the engine: all waiting observations are judged together and stored in one transaction."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby
from typing import Any

from tocsin_monitor.as_json import verdict_json
from tocsin_monitor.engine.aggregation import Aggregated, aggregate, complete_aggregates
from tocsin_monitor.engine.block import DetectorInput, DetectorOutput, SignalBlock
from tocsin_monitor.engine.engine_state import EngineState
from tocsin_monitor.engine.incidents import (
    alarm_facts,
    close_incident,
    limit_facts,
    nanoseconds,
    put_incident,
    range_facts,
)
from tocsin_monitor.engine.isolation import judge_apart
from tocsin_monitor.engine.lifecycle import create_from_first
from tocsin_monitor.engine.limits import SAVED_AFTER, LimitWatch, limits_of
from tocsin_monitor.engine.limits import cursor_of as limits_cursor
from tocsin_monitor.engine.peers import cursor_of, distances
from tocsin_monitor.engine.signals import NOTHING, MonitoredSignal
from tocsin_monitor.engine.stages import (
    Fresh,
    JudgedObservation,
    Ordered,
    Received,
    in_maintenance,
    in_time,
    put_in_order,
    receive,
    unjudged,
    with_times,
    within_gaps,
    without_duplicates,
    zeros,
)
from tocsin_monitor.observations import Batch, Cursor, Observation, Outcome, Status
from tocsin_monitor.store import IncidentFacts, IncidentRow, StoreWriter

# Missing observations filled per turn: less than a second of work. Longer gaps wait for the next turn, behind what
# others have sent meanwhile.
MOST_FILLED = 5000


@dataclass(frozen=True)
class JudgedTurn:
    """The observations of one turn after judging: the new ones of each signal, and those stored without a verdict."""

    fresh: Mapping[MonitoredSignal, Sequence[JudgedObservation]]
    late: Sequence[JudgedObservation]

    @property
    def past(self) -> list[Received]:
        """The imported observations."""
        return [one.received for one in self.late if one.received.history]

    def __iter__(self) -> Iterator[JudgedObservation]:
        return chain(chain.from_iterable(self.fresh.values()), self.late)


@dataclass(frozen=True)
class StoredTurn:
    """The result of a stored turn: the outcomes, and the incidents that changed."""

    outcomes: Mapping[Received, Outcome]
    incidents: Sequence[tuple[MonitoredSignal, IncidentRow]]


class Ingest:
    """Takes batches through all stages: received, ordered, judged, stored."""

    def __init__(self, state: EngineState) -> None:
        self._state = state

    def timed(self, batches: Sequence[Batch], now: int) -> list[Batch]:
        """The batches with a time for each observation, as `take` requires. A retry must use the same times."""
        return with_times(batches, self._state.signals, now, self._state.latest(now))

    def take(self, batches: Sequence[Batch], now: int) -> list[list[Outcome | None]]:
        """Process the batches; returns the outcome of each observation, once everything is stored.

        None means that an observation has to wait for another turn, because the gap before it is too long.
        """
        answers = self._receive(batches, now)
        received = [one for some in answers for one in some if isinstance(one, Received)]
        aggregated = aggregate(received, self._state.store)
        order = put_in_order(aggregated.received, self._state.windows)
        late, duplicates = self._without_duplicates(order.old)
        fresh, waiting = within_gaps(order.fresh, MOST_FILLED, self._state.windows)
        waiting.update(again for again, first in order.repeated if first in waiting)
        judged = self._judge(fresh, late)
        # A source's cursor is stored together with the last observations it covers.
        whole = [batch for batch, some in zip(batches, answers, strict=True) if waiting.isdisjoint(some)]
        cursors = [batch.cursor for batch in whole if batch.cursor is not None]
        cursors += [batch.request for batch in batches if batch.request is not None]
        stored = self._store(judged, aggregated, cursors, now)
        self._state.note(judged.fresh, stored.incidents, now)
        self._state.note_parts(aggregated.signals, now)
        self._state.note_history(judged.past)
        self._note_senders(batches, answers)
        outcomes = {**aggregated.outcomes, **duplicates, **stored.outcomes}
        for signal, some in judged.fresh.items():
            if warning := signal.warning:
                newest = some[-1].received
                outcomes[newest] = replace(outcomes[newest], message=warning)
        for again, first in order.repeated:
            if again not in waiting:
                outcomes[again] = replace(outcomes[first], status=Status.DUPLICATE)
        results = [
            [one if isinstance(one, Outcome) else None if one in waiting else outcomes[one] for one in some]
            for some in answers
        ]
        self._count(batches, results, judged)
        self._state.tell(stored.incidents)
        self._tell_verdicts(judged, stored)
        return results

    def count_absent(self, now: int) -> bool:
        """Take the zeros of signals without data until now, and aggregates before them; true if there may be more."""
        state, windows = self._state, self._state.windows
        fresh: Fresh = {}
        wholes: list[Received] = []
        count = 0
        for signal in state.signals.values():
            last = signal.last_time if signal.row.rules.no_data_is_zero and signal.live else None
            absent = range(0) if last is None else signal.absent_now(last, now)
            if last is None or not absent or count >= MOST_FILLED or in_maintenance(windows, signal.name, now):
                continue
            over = complete_aggregates(signal, absent.stop, state.store)
            some = put_in_order(over, windows).fresh.get(signal, [])
            last = some[-1].received.time if some else last
            some += zeros(signal, signal.absent_now(last, now), windows, MOST_FILLED)
            if some:
                fresh |= within_gaps({signal: some}, MOST_FILLED, windows)[0]
                wholes += over
                count += len(some)
        if fresh:
            judged = self._judge(fresh, ())
            stored = self._store(judged, Aggregated(wholes), (), now)
            state.note(judged.fresh, stored.incidents, None)
            state.tell(stored.incidents)
            self._tell_verdicts(judged, stored)
        return count >= MOST_FILLED

    def _receive(self, batches: Sequence[Batch], now: int) -> list[list[Received | Outcome]]:
        """Find the signals, and create new ones. Observations that cannot be taken get their outcome here."""
        signals, quarantined, latest = self._state.signals, self._state.quarantined, self._state.latest(now)
        firsts: dict[str, Observation] = {}
        for batch in batches:
            for one in batch.observations:
                if one.signal not in signals and one.signal not in quarantined and in_time(one.time, latest):
                    firsts.setdefault(one.signal, replace(one, sender=_sender(batch, one)))
        refused = create_from_first(self._state, firsts.values()) if firsts else {}
        return [
            [
                receive(one, signals.get(one.signal) or quarantined.get(one.signal), refused, batch, now, latest)
                for one in batch.observations
            ]
            for batch in batches
        ]

    def _note_senders(self, batches: Sequence[Batch], answers: Sequence[Sequence[Received | Outcome]]) -> None:
        """Keep in mind who sends what: a sender that stops is one event, however many signals it has."""
        for batch, some in zip(batches, answers, strict=True):
            if batch.history:
                continue
            for observation, one in zip(batch.observations, some, strict=True):
                if isinstance(one, Received) and isinstance(one.signal, MonitoredSignal):
                    one.signal.source = _sender(batch, observation)

    def _without_duplicates(self, old: Sequence[Ordered]) -> tuple[list[Ordered], dict[Received, Outcome]]:
        if not old:
            return [], {}
        with self._state.store.reading() as reader:
            stored = reader.observations_at([(one.received.signal.row.id, one.received.time) for one in old])
        return without_duplicates(old, stored)

    def _judge(self, fresh: Fresh, late: Iterable[Ordered]) -> JudgedTurn:
        """Feed new observations to the detectors, block by block."""
        work: dict[MonitoredSignal, DetectorInput] = {}
        apart = distances(self._state.signals.values(), fresh)
        for signal, some in fresh.items():
            missing = (NOTHING,) * len(signal.row.features)
            values = [
                one.received.values + apart.get(one.received, ()) if one.status is Status.SCORED else missing
                for one in some
            ]
            work[signal] = signal.detector_input([one.received.time for one in some], values)
        done = self._run(work)
        judged: dict[MonitoredSignal, list[JudgedObservation]] = {}
        unusable: list[Ordered] = []
        for signal, some in fresh.items():
            taken = done.get(signal)
            if taken is None:
                unusable += [Ordered(one.received, Status.QUARANTINED) for one in some]
                continue
            signal.note_forecasts(work[signal].times, taken.kept_forecasts)
            judged[signal] = [
                JudgedObservation(one.received, one.status, verdict) if one.status is Status.SCORED else unjudged(one)
                for one, verdict in zip(some, taken.judged, strict=True)
            ]
        return JudgedTurn(judged, [unjudged(one) for one in chain(late, unusable)])

    def _run(self, work: Mapping[MonitoredSignal, DetectorInput]) -> dict[MonitoredSignal, DetectorOutput]:
        """The detectors' output for each signal, except for those that are quarantined because theirs raised."""
        blocks: dict[SignalBlock, dict[MonitoredSignal, DetectorInput]] = {}
        for signal, given in work.items():
            blocks.setdefault(signal.block, {})[signal] = given
        # One block needs no thread pool.
        run = map if len(blocks) == 1 else self._state.pool.map
        done: dict[MonitoredSignal, DetectorOutput] = {}
        for some, outputs in list(zip(blocks.values(), run(_output, blocks.keys(), blocks.values()), strict=True)):
            done.update(judge_apart(self._state, some) if outputs is None else outputs)
        return done

    def _store(self, judged: JudgedTurn, aggregated: Aggregated, cursors: Sequence[Cursor], now: int) -> StoredTurn:
        """Store everything from this turn in one transaction."""
        if not judged.fresh and not judged.late and not cursors and not aggregated.parts:
            return StoredTurn({}, [])
        incident_of: dict[JudgedObservation, int] = {}
        with self._state.store.transaction() as writer:
            aggregated.put(writer)
            writer.add_observations([one.row for one in judged])
            due = [
                (signal, some[-1].received.time)
                for signal, some in judged.fresh.items()
                if signal.unsaved_forecasts.due
            ]
            writer.add_kept_forecasts([(signal.row.id, last, signal.unsaved_forecasts.take()) for signal, last in due])
            self._state.pending_imports.put(writer, judged.past)
            changed = self._end_silences(writer, judged.fresh, now)
            changed += self._out_of_range(writer, judged.fresh, now)
            changed += self._limits(writer, judged.fresh, now)
            for signal, facts in self._alarms(writer, judged, now):
                number = self._state.put_alarm(writer, signal, facts, now)
                changed.append((signal, number))
                for one in judged.fresh[signal]:
                    if one.verdict.alarm and facts.start <= one.received.time <= facts.end:
                        incident_of[one] = number
            for signal in judged.fresh:
                if signal.peer is not None and signal.peer.unsaved:
                    writer.put_cursor(cursor_of(signal.row.id), signal.peer.saved())
            for cursor in cursors:
                writer.put_cursor(cursor.source, cursor.position)
            incidents = [(signal, row) for signal, number in changed if (row := writer.incident(number)) is not None]
        return StoredTurn({one.received: one.outcome(incident_of.get(one)) for one in judged}, incidents)

    def _end_silences(
        self, writer: StoreWriter, fresh: Iterable[MonitoredSignal], now: int
    ) -> list[tuple[MonitoredSignal, int]]:
        """Close the silence incidents of signals that send again."""
        ended = []
        for signal in fresh:
            row = None if signal.silence_incident is None else writer.incident(signal.silence_incident)
            if row is not None:
                close_incident(writer, self._state.events, signal, row, "returned", now)
                ended.append((signal, row.id))
        return ended

    def _out_of_range(
        self, writer: StoreWriter, fresh: Mapping[MonitoredSignal, Sequence[JudgedObservation]], now: int
    ) -> list[tuple[MonitoredSignal, int]]:
        """Open, prolong and close incidents of values out of range. The first valid value closes one."""
        changed = []
        for signal, some in fresh.items():
            number = signal.range_incident
            if number is None and signal.row.rules.valid_range is None:
                continue
            for valid, run in groupby(some, lambda one: _is_valid(one.status, one.received.values)):
                going_on = None if number is None else writer.incident(number)
                if valid is False:
                    facts = range_facts(signal, going_on, [one.received for one in run], now)
                    number = put_incident(writer, self._state.events, signal, facts, now)
                    changed.append((signal, number))
                elif valid and going_on is not None:
                    close_incident(writer, self._state.events, signal, going_on, "returned", now)
                    changed.append((signal, going_on.id))
                    number = None
        return changed

    def _limits(
        self, writer: StoreWriter, fresh: Mapping[MonitoredSignal, Sequence[JudgedObservation]], now: int
    ) -> list[tuple[MonitoredSignal, int]]:
        """Open, change and close incidents of limits that are crossed or will be."""
        changed = []
        for signal, some in fresh.items():
            row, number = signal.row, signal.limit_incident
            wanted = limits_of(row.given_features, row.rules)
            taken = [one.received for one in some if one.status is Status.SCORED]
            if not taken or (wanted is None and signal.watch is None and number is None):
                continue
            _follow_limits(writer, signal, wanted)
            watch = signal.watch
            if number is not None and (watch is None or watch.incident is None):  # its limit is another one now
                going_on = writer.incident(number)
                if going_on is not None:
                    close_incident(writer, self._state.events, signal, going_on, "returned", now)
                    changed.append((signal, number))
            if watch is None:
                continue
            before, found = watch.incident, watch.take_all((one.time, one.values) for one in taken)
            for incident in found:
                facts = limit_facts(signal, incident, now)
                number = put_incident(writer, self._state.events, signal, facts, now)
                if facts.open and before is not None and incident.is_crossing_of(before):
                    self._state.events.tell_again(writer, signal, number, facts, now)
                changed.append((signal, number))
            if watch.unsaved >= SAVED_AFTER:
                # Spread by id, so that signals that began together are not stored together.
                writer.put_cursor(limits_cursor(row.id), watch.saved(row.id % SAVED_AFTER))
        return changed

    def _alarms(self, writer: StoreWriter, judged: JudgedTurn, now: int) -> list[tuple[MonitoredSignal, IncidentFacts]]:
        """The alarm incidents that started, changed or ended. Those that only lasted longer are stored here."""
        in_place = {(signal.block, signal.place): signal for signal in judged.fresh}
        facts: list[tuple[MonitoredSignal, IncidentFacts]] = []
        for block in dict.fromkeys(signal.block for signal in judged.fresh):
            for place, incident in block.take_closed():
                signal = in_place.get((block, place))
                if signal is not None:  # it was not quarantined in this turn
                    facts.append((signal, alarm_facts(signal, incident, now)))
        longer: list[tuple[int, int, int]] = []
        for signal, some in judged.fresh.items():
            going_on = signal.block.fleet.open_incident(signal.place)
            if going_on is None:
                continue
            if signal.alarm_incident is None or any(one.verdict.alarm for one in some):
                facts.append((signal, alarm_facts(signal, going_on, now)))
            else:
                # It may last long without an alarm: store how long, but notify nobody again.
                longer.append((signal.alarm_incident, nanoseconds(going_on.end), going_on.duration))
        writer.prolong_incidents(longer)
        return facts

    def _count(self, batches: Sequence[Batch], results: Sequence[Sequence[Outcome | None]], judged: JudgedTurn) -> None:
        metrics = self._state.metrics
        for batch, some in zip(batches, results, strict=True):
            for status, many in Counter(outcome.status for outcome in some if outcome is not None).items():
                metrics.observations.labels(status=status.name.lower(), source=batch.source).inc(many)
        metrics.alarms.inc(sum(one.verdict.alarm for one in judged))

    def _tell_verdicts(self, judged: JudgedTurn, stored: StoredTurn) -> None:
        newest = {}
        hub = self._state.hub
        for signal, some in judged.fresh.items():
            last = stored.outcomes[some[-1].received]
            newest[signal.name] = partial(_latest, last, signal.observations)
            if hub.watched(signal.name):
                for one in some:
                    hub.publish("verdict", verdict_json(stored.outcomes[one.received]))
        if newest:
            hub.publish("verdicts", {"signals": newest})


def _latest(outcome: Outcome, observations: int) -> dict[str, Any]:
    return {**verdict_json(outcome), "observations": observations}


def _output(
    block: SignalBlock, inputs: Mapping[MonitoredSignal, DetectorInput]
) -> dict[MonitoredSignal, DetectorOutput] | None:
    """What the detectors of a block say; None if one of them raises."""
    try:
        outputs = block.run({signal.place: given for signal, given in inputs.items()})
    except MemoryError:
        raise
    except Exception:
        return None
    return {signal: outputs[signal.place] for signal in inputs}


def _follow_limits(
    writer: StoreWriter, signal: MonitoredSignal, wanted: tuple[tuple[float | None, float | None], ...] | None
) -> None:
    """Watch the limits that a signal now has."""
    watch, features, rules = signal.watch, signal.row.given_features, signal.row.rules
    if wanted is None:
        signal.watch = None
        if watch is not None:
            writer.remove_cursor(limits_cursor(signal.row.id))
    elif watch is None:
        signal.watch = LimitWatch(features, rules)
    elif wanted != watch.limits:
        signal.watch = watch.following(features, rules)


def _is_valid(status: Status, values: Sequence[float]) -> bool | None:
    """Whether an observation is in the valid range; None if it does not say: it has no value, or is in maintenance."""
    if status is Status.OUT_OF_RANGE:
        return False
    return True if status is Status.SCORED and any(value == value for value in values) else None


def _sender(batch: Batch, observation: Observation) -> str | None:
    """Who sent it; nobody sends what was imported."""
    return None if batch.history else observation.sender or batch.sender or batch.source
