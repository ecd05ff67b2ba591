"""One turn of the engine: everything that has arrived is scored together and stored in one transaction."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from tocsin.service.as_json import verdict_json
from tocsin.service.engine.block import SignalBlock, Stretch
from tocsin.service.engine.core import Core
from tocsin.service.engine.gathering import Gathered, gather
from tocsin.service.engine.incidents import alarm_facts, close_incident, nanoseconds
from tocsin.service.engine.rules import Arrival, Sorted, settle_old, sort_out, values_of, with_times
from tocsin.service.engine.watched import NOTHING, Watched
from tocsin.service.errors import RefusedError
from tocsin.service.observations import Batch, Cursor, Judged, Observation, Outcome, Status
from tocsin.service.store import IncidentFacts, IncidentRow, ObservationRow, StoreWriter

Answer = Arrival | Outcome
Changed = list[tuple[Watched, IncidentRow]]
# The first moment that 64 bits of nanoseconds can say; one before it means no time at all.
EARLIEST = -(2**63) + 1
# So many missing observations are filled in one turn: less than a second of work. Gaps beyond that wait for the next
# turn, behind what others have sent meanwhile.
MOST_FILLED = 5000


def timed(core: Core, batches: Sequence[Batch], now: int) -> list[Batch]:
    """The batches with a time for each observation: what `tick` takes, the first time and every other time."""
    return with_times(batches, core.signals, now, _latest(core, now))


def tick(core: Core, batches: Sequence[Batch], now: int) -> list[list[Outcome | None]]:
    """Take the batches; returns, once everything is durable, what became of each observation.

    None stands for one that has to wait for another turn, since too much is missing before it.
    """
    answers = _admit(core, batches, now)
    gathered = gather(core, [answer for batch in answers for answer in batch if isinstance(answer, Arrival)])
    found = sort_out(gathered.arrivals, core.windows)
    if found.old:
        with core.store.reading() as reader:
            settle_old(found, reader.observations_at([(one.signal.row.id, one.time) for one in found.old]))
    found.defer(MOST_FILLED)
    _score(core, found)
    # How far a source has read is stored with the last of what it read.
    whole = [batch for batch, some in zip(batches, answers, strict=True) if not any(map(_is_deferred, some))]
    cursors = [batch.cursor for batch in whole if batch.cursor is not None]
    cursors += [batch.request for batch in batches if batch.request is not None]
    incidents = _store(core, cursors, gathered, found, now)
    core.note(found.fresh, incidents, now)
    core.note_parts(gathered.signals, now)
    core.note_history(found.late)
    for arrival in found.repeated:
        if arrival.first is not None and not arrival.deferred:
            arrival.outcome = replace(_outcome(arrival.first), status=Status.DUPLICATE)
    outcomes = [[None if _is_deferred(answer) else _outcome(answer) for answer in batch] for batch in answers]
    _count(core, batches, outcomes, found)
    core.tell(incidents)
    _tell_verdicts(core, found)
    return outcomes


def _is_deferred(answer: Answer) -> bool:
    return isinstance(answer, Arrival) and answer.deferred


def _outcome(answer: Answer) -> Outcome:
    outcome = answer.outcome if isinstance(answer, Arrival) else answer
    if outcome is None:
        raise RuntimeError(f"no outcome for {answer!r}")
    return outcome


def _latest(core: Core, now: int) -> int:
    return now + round(core.settings.engine.future_tolerance * 1e9)


def _admit(core: Core, batches: Sequence[Batch], now: int) -> list[list[Answer]]:
    """Find the signals, making those that are new; what cannot be taken is answered at once."""
    latest = _latest(core, now)
    firsts: dict[str, Observation] = {}
    for batch in batches:
        for one in batch.observations:
            known = one.signal in core.signals or one.signal in core.aside
            if not known and one.time is not None and EARLIEST <= one.time <= latest:
                firsts.setdefault(one.signal, one)
    refused = core.appear(firsts.values()) if firsts else {}
    return [
        [_admit_one(core, one, refused, now, latest, batch=batch) for one in batch.observations] for batch in batches
    ]


def _admit_one(
    core: Core, observation: Observation, refused: dict[str, str], now: int, latest: int, *, batch: Batch
) -> Answer:
    name, time = observation.signal, observation.time
    if time is None or time < EARLIEST:
        message = f"a time must be at least {EARLIEST} nanoseconds after 1970, got {time}"
        return Outcome(name, now, Status.REFUSED, message=message)
    if time > latest:
        ahead = (time - now) / 1e9
        message = f"its time is {ahead:.0f} s ahead of the clock, and {(latest - now) / 1e9:g} s are tolerated"
        return Outcome(name, time, Status.FUTURE, message=message)
    if name in refused:
        return Outcome(name, time, Status.REFUSED, message=refused[name])
    signal = core.aside[name] if name in core.aside else core.signals[name]
    try:
        return Arrival(
            signal, time, values_of(observation, signal.row.features), history=batch.history, whole=batch.whole
        )
    except RefusedError as error:
        return Outcome(name, time, Status.REFUSED, message=str(error))


def _score(core: Core, found: Sorted) -> None:
    """Let the detectors take what is new, block by block, and note their verdicts in the arrivals."""
    work: dict[SignalBlock, dict[int, Stretch]] = {}
    for signal, arrivals in found.fresh.items():
        missing = (NOTHING,) * len(signal.row.features)
        values = [arrival.values if arrival.status is Status.SCORED else missing for arrival in arrivals]
        stretch = signal.stretch([arrival.time for arrival in arrivals], values)
        work.setdefault(signal.block, {})[signal.place] = stretch
    # With one block there is nothing to share among threads.
    run = map if len(work) == 1 else core.pool.map
    done = dict(zip(work, run(SignalBlock.run, work.keys(), work.values()), strict=True))
    for signal, arrivals in found.fresh.items():
        taken = done[signal.block][signal.place]
        signal.note_forecasts(work[signal.block][signal.place].times, taken.foretold)
        for arrival, verdict in zip(arrivals, taken.judged, strict=True):
            kept = verdict if arrival.status is Status.SCORED else _unjudged(arrival.values)
            arrival.outcome = Outcome(signal.name, arrival.time, arrival.status, kept)
    for arrival in found.late:
        arrival.outcome = Outcome(arrival.signal.name, arrival.time, arrival.status, _unjudged(arrival.values))


def _unjudged(values: tuple[float, ...]) -> Judged:
    """What is stored of an observation without a verdict."""
    nothing = (NOTHING,) * len(values)
    return Judged(values, nothing, nothing, nothing, NOTHING, NOTHING, nothing, alarm=False, warm=False)


def _store(core: Core, cursors: Sequence[Cursor], gathered: Gathered, found: Sorted, now: int) -> Changed:
    """Everything that this turn brought, in one transaction; returns the incidents that changed."""
    new = [arrival for arrivals in (*found.fresh.values(), found.late) for arrival in arrivals]
    if not new and not cursors and not gathered.parts:
        return []
    with core.store.transaction() as writer:
        gathered.put(writer)
        writer.add_observations(_rows(new))
        due = [(signal, some[-1].time) for signal, some in found.fresh.items() if signal.notes.due]
        writer.add_foretold([(signal.row.id, last, signal.notes.take()) for signal, last in due])
        core.histories.put(writer, found.late)
        changed = [*_end_silences(core, writer, found, now), *_put_alarms(core, writer, found, now)]
        for cursor in cursors:
            writer.put_cursor(cursor.source, cursor.position)
        return [(signal, row) for signal, number in changed if (row := writer.incident(number)) is not None]


def _rows(arrivals: Sequence[Arrival]) -> list[ObservationRow]:
    return [
        ObservationRow(arrival.signal.row.id, arrival.time, arrival.status, arrival.outcome.judged)
        for arrival in arrivals
        if arrival.outcome is not None and arrival.outcome.judged is not None
    ]


def _end_silences(core: Core, writer: StoreWriter, found: Sorted, now: int) -> Iterator[tuple[Watched, int]]:
    for signal in found.fresh:
        row = None if signal.silence_incident is None else writer.incident(signal.silence_incident)
        if row is not None:
            close_incident(writer, core.sinks, signal, row, "returned", now)
            yield signal, row.id


def _put_alarms(core: Core, writer: StoreWriter, found: Sorted, now: int) -> Iterator[tuple[Watched, int]]:
    """Store the incidents that began, went on or ended, and tell the alarms which one they belong to."""
    in_place = {(signal.block, signal.place): signal for signal in found.fresh}
    facts: list[tuple[Watched, IncidentFacts]] = []
    for block in dict.fromkeys(signal.block for signal in found.fresh):
        for place, incident in block.take_closed():
            signal = in_place[block, place]
            facts.append((signal, alarm_facts(signal, incident, now)))
    longer: list[tuple[int, int, int]] = []
    for signal, arrivals in found.fresh.items():
        going_on = signal.block.fleet.open_incident(signal.place)
        if going_on is None:
            continue
        if signal.alarm_incident is None or any(map(_is_alarm, arrivals)):
            facts.append((signal, alarm_facts(signal, going_on, now)))
        else:
            # It may go on for long without an alarm: that it does is kept, and nobody is told again.
            longer.append((signal.alarm_incident, nanoseconds(going_on.end), going_on.duration))
    writer.prolong_incidents(longer)
    for signal, one in facts:
        number = core.put_alarm(writer, signal, one, now)
        for arrival in found.fresh[signal]:
            if arrival.outcome and _is_alarm(arrival) and one.start <= arrival.time <= one.end:
                arrival.outcome = replace(arrival.outcome, incident=number)
        yield signal, number


def _is_alarm(arrival: Arrival) -> bool:
    judged = None if arrival.outcome is None else arrival.outcome.judged
    return judged is not None and judged.alarm


def _count(core: Core, batches: Sequence[Batch], outcomes: Sequence[Sequence[Outcome | None]], found: Sorted) -> None:
    metrics = core.metrics
    for batch, answers in zip(batches, outcomes, strict=True):
        results = [one for one in answers if one is not None]
        for status, many in Counter(outcome.status for outcome in results).items():
            metrics.observations.labels(status=status.name.lower(), source=batch.source).inc(many)
    metrics.alarms.inc(sum(map(_is_alarm, chain.from_iterable(found.fresh.values()))))


def _tell_verdicts(core: Core, found: Sorted) -> None:
    newest = {}
    for signal, arrivals in found.fresh.items():
        outcomes = [arrival.outcome for arrival in arrivals if arrival.outcome]
        newest[signal.name] = {**verdict_json(outcomes[-1]), "observations": signal.observations}
        if core.hub.watched(signal.name):
            for outcome in outcomes:
                core.hub.publish("verdict", verdict_json(outcome))
    if newest:
        core.hub.publish("verdicts", {"signals": newest})
