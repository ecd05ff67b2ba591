"""What a detector can find in a signal, and what not: faults injected into the signal's own past.

At places of the past where the signal was in no incident, the detector as it was then goes on several times: without a
fault, and with one of each kind and size. A fault is found if an incident begins where the signal without it has none.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks
from tocsin.conformal.scorer import Floats
from tocsin.data import parse_times
from tocsin.detection import Detector, Fleet, Verdicts, length_text
from tocsin.detection.incidents.verdict import name_and_unit
from tocsin.detection.settings.alarm_rate import SECONDS, is_budget, parse_budget
from tocsin.detection.state.rerating import rerated
from tocsin.evaluation import faults

#: How long after its end a fault may still be found.
AFTER = 15
#: What is called found: so many of the cases.
SHARE = 0.9
#: How many times as many false incidents the alarm rate allows that is compared with.
OFTENER, MOST_RATE = 7, 0.4
#: Sizes in standard deviations of the noise, the forecast's error; those of noise are factors.
SIZES = {
    "shift": (0.5, 1.0, 2.0, 3.0, 5.0, 8.0),
    "drift": (1.0, 2.0, 4.0, 8.0),
    "stuck": (0.0,),
    "noise": (1.5, 2.0, 3.0, 5.0),
    "spike": (3.0, 5.0, 8.0, 12.0),
}
_WORDS = {
    "shift": "a shift of {}", "drift": "a drift to {} over {lasts}", "stuck": "a stuck sensor",
    "noise": "noise {} times as large", "spike": "a spike of {}",
}  # fmt: skip

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """How often one fault was found: in `found` of `cases`; `low` and `high` are the 95% interval of the share.

    `size` is in the feature's own unit, for noise a factor, and 0 for a stuck sensor. `within` is after how many
    observations of the fault nine of ten of all cases were found; None if fewer were.
    """

    feature: str
    fault: str
    size: float
    cases: int
    found: int
    low: float
    high: float
    within: int | None


@dataclass(frozen=True)
class Detectability:
    """What was found at the detector's alarm rate, and at one with more false incidents. `print` it for sentences."""

    alarm_rate: str
    findings: tuple[Finding, ...]
    oftener_rate: str
    oftener: tuple[Finding, ...]
    #: How many observations each fault lasted, the spike excepted, and the seconds between two.
    lasts: int
    interval: float | None
    #: That of features whose names have none in brackets.
    unit: str = ""

    @property
    def cases(self) -> int:
        """How many times each fault was injected."""
        return self.findings[0].cases

    @property
    def sentences(self) -> list[str]:
        """For each feature and kind of fault, the smallest that is found, and whether the other rate does better."""
        keys = dict.fromkeys((one.feature, one.fault) for one in self.findings)
        several = len({feature for feature, _ in keys}) > 1
        said = []
        for feature, fault in keys:
            own, other = (
                smallest_found([one for one in all_of if (one.feature, one.fault) == (feature, fault)])
                for all_of in (self.findings, self.oftener)
            )
            text = f"at {rate_words(self.alarm_rate)} {self._words(own)}"
            if _is_better(other, own):
                text += f"; at {rate_words(self.oftener_rate)} {self._words(other)}"
            said.append(f"{name_and_unit(feature)[0]}: {text}" if several else text)
        return said

    def _words(self, one: Finding) -> str:
        size = f"{one.size:g} {self.unit_of(one)}".rstrip()
        what = fault_words(one.fault, size, length_text(self.lasts, self.interval))
        return f"{what} is found {self.how_found(one)} ({share_words(one)})"

    def unit_of(self, one: Finding) -> str:
        """The unit of a finding's size; none of a factor."""
        return "" if one.fault == "noise" else name_and_unit(one.feature)[1] or self.unit

    def how_found(self, one: Finding) -> str:
        """How soon, and in how many of the cases."""
        if one.within is None:
            return f"in {'only ' if one.found else ''}{one.found} of {one.cases} cases"
        return f"within {length_text(one.within, self.interval)} in {enough(one.cases)} of {one.cases} cases"

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def detectable(
    detector: Detector,
    values: ArrayLike,
    times: ArrayLike | None = None,
    *,
    cases: int = 30,
    lasts: int = 200,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> Detectability:
    """Which faults this detector would find in a signal with these values, `(T,)` or `(T, F)`: see `Detectability`.

    The detector judges the values once, and has seen them afterwards; `times` are needed as for `Detector.run`. Each
    fault is injected at up to `cases` places, spread over what comes after the warm-up so that no two overlap, every
    other one downwards, and lasts that many observations. After `seconds`, the places that were done are all: their
    number is in each finding. `progress` is called with how many of the places are done, and how many there are.
    """
    cases, lasts = checks.integer("cases", cases, least=1), checks.integer("lasts", lasts, least=1)
    end = math.inf if seconds is None else time.monotonic() + checks.number("seconds", seconds, above=0)
    table = checks.numbers("values", values)
    table = table[:, np.newaxis] if table.ndim == 1 else table
    detector.run(table[:0])
    fleet, window = detector.fleet, lasts + AFTER
    moments = None if times is None else parse_times(times, table.shape[:1], fleet.zone)
    least = fleet.warm_up + window
    if len(table) < least:
        raise ValueError(f"values must have at least {least} observations: warm-up and one fault, got {len(table)}")
    apart = max(window, (len(table) - least) // cases)
    starts = range(len(table) - window, fleet.warm_up - 1, -apart)[:cases][::-1]
    forecast, states = _watched(detector, table, moments, starts)
    if not states:
        raise ValueError("values must have places where the signal is warm and in no incident, got none")
    injected = _faults(fleet.features, (table - forecast)[fleet.warm_up :])
    count = 1 + len(injected)
    oftener = min(OFTENER * fleet.settings.rate, MOST_RATE)
    settings = [fleet.settings, replace(fleet.settings, alarm_rate=oftener)]
    delays: list[list[NDArray[np.int64]]] = [[], []]
    order = np.random.default_rng(0).permutation(list(states))  # if the time is too short, the past is still covered
    for number, start in enumerate(order.tolist()):
        if number and time.monotonic() > end:
            break
        place = slice(start, start + window)
        copies = np.repeat(table[place, np.newaxis], count, axis=1)
        for row, (feature, kind, size) in enumerate(injected, start=1):
            length = 1 if kind == "spike" else lasts
            part, sign = slice(start, start + length), -1.0 if number % 2 else 1.0
            faulty = _injected(kind, sign * size, table[:start, feature], table[part, feature], forecast[part, feature])
            copies[:length, row, feature] = np.where(np.isfinite(faulty), faulty, table[part, feature])
        when = None if moments is None else np.repeat(moments[place, np.newaxis], count, axis=1)
        for at, one in enumerate(settings):
            twins = Fleet.of(count, one)
            twins.put_all(range(count), [rerated(states[start], oftener) if at else states[start]] * count)
            delays[at].append(_found(twins.run_arrays(copies, times=when), one.min_duration))
        if progress is not None:
            progress(number + 1, len(order))
    own, other = (tuple(_findings(fleet.features, injected, np.array(found))) for found in delays)
    names = str(fleet.settings.alarm_rate), _oftener(fleet.settings.alarm_rate, oftener)
    return Detectability(names[0], own, names[1], other, lasts, fleet.interval)


def _watched(
    detector: Detector, table: Floats, times: NDArray[Any] | None, starts: Sequence[int]
) -> tuple[Floats, dict[int, Any]]:
    """The forecasts of all values, and the detector's state at each start where it is warm and in no incident."""
    forecasts, states = [], {}
    for first, last in zip([0, *starts], [*starts, len(table)], strict=True):
        part = detector.run(table[first:last], None if times is None else times[first:last]).kept_verdicts
        forecasts.append(part.forecast[:, 0])
        if last < len(table) and part.warm[-1, 0] and not part.open[-1, 0]:
            states[last] = detector.fleet.signal_state(0)
    return np.concatenate(forecasts), states


def _faults(names: Sequence[str], errors: Floats) -> list[tuple[int, str, float]]:
    """Feature, kind and size of each fault, for features that change; sizes are rounded to what is said of them."""
    found = []
    for feature in range(len(names)):
        known = errors[np.isfinite(errors[:, feature]), feature]
        middle = np.median(known) if known.size else 0.0
        noise = 1.4826 * float(np.median(np.abs(known - middle))) or float(known.std()) if known.size else 0.0
        for kind, sizes in SIZES.items() if noise > 0 else ():
            unit = 1.0 if kind == "noise" else noise
            found += [(feature, kind, float(f"{size * unit:.2g}")) for size in sizes]
    if not found:
        raise ValueError(f"values must change, got the same ones for {', '.join(names)}")
    return found


def _injected(kind: str, size: float, before: Floats, values: Floats, forecast: Floats) -> Floats:
    """Values with a fault; NaN where one is missing."""
    if kind == "drift":
        return faults.drifting(values, size)
    if kind == "stuck":
        return np.where(np.isfinite(values), faults.stuck(values, before[np.isfinite(before)][-1]), np.nan)
    if kind == "noise":
        return faults.noisier(forecast, values - forecast, abs(size))
    return faults.shifted(values, size)


def _found(verdicts: Verdicts, min_duration: int) -> NDArray[np.int64]:
    """After how many observations each fault was found, 0 for never; the first signal is the one without a fault."""
    active = verdicts.open | verdicts.alarm
    lasted = found = np.zeros(active.shape[1], dtype=np.int64)
    for step in range(len(active)):
        begins = verdicts.opened[step] & ~active[step, 0]
        lasted = np.where(active[step], np.where(begins, 1, lasted + (lasted > 0)), 0)
        found = np.where((found == 0) & (lasted >= min_duration), step + 1, found)
    return found[1:]


def _findings(
    names: Sequence[str], injected: Sequence[tuple[int, str, float]], delays: NDArray[np.int64]
) -> Iterator[Finding]:
    """What was found of each fault, from the delays `[cases, faults]`."""
    for (feature, kind, size), column in zip(injected, delays.T, strict=True):
        ordered = np.sort(column[column > 0])
        least = enough(len(column))
        within = int(ordered[least - 1]) if len(ordered) >= least else None
        yield Finding(names[feature], kind, size, len(column), len(ordered), *wilson(len(ordered), len(column)), within)


def fault_words(fault: str, size: str, lasts: str) -> str:
    """A fault of this size, which for a drift is reached at its end."""
    return _WORDS[fault].format(size, lasts=lasts)


def share_words(one: Finding) -> str:
    """The interval of the share of cases that is stated."""
    low, high = wilson(one.found if one.within is None else enough(one.cases), one.cases)
    return f"95% interval {low:.0%} to {high:.0%}"


def enough(cases: int) -> int:
    """In how many of these cases a fault must be found to count as found: nine of ten."""
    return math.ceil(SHARE * cases - 1e-9)


def wilson(found: int, cases: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's 95% interval of a share, of which `found` of `cases` were seen.

    >>> "{:.3f} {:.3f}".format(*wilson(27, 30))
    '0.744 0.965'
    """
    share, spread = found / cases, z * z / cases
    middle = share + spread / 2
    half = math.sqrt(spread * (share * (1 - share) + spread / 4))
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))


def _is_better(one: Finding, other: Finding) -> bool:
    """Whether a smaller fault is found, or the same one in half the time."""
    if one.within is None or other.within is None:
        return one.within is not None
    return one.size < other.size or 2 * one.within <= other.within


def smallest_found(sizes: Sequence[Finding]) -> Finding:
    """The smallest that is found, together with all larger ones; the largest if none is."""
    smallest = sizes[-1]
    for one in reversed(sizes):
        if one.within is None:
            break
        smallest = one
    return smallest


def rate_words(alarm_rate: str) -> str:
    """An alarm rate in a sentence: "1/week", but "an alarm rate of 0.01"."""
    return alarm_rate if "/" in alarm_rate else f"an alarm rate of {alarm_rate}"


def _oftener(alarm_rate: Any, rate: float) -> str:
    """The alarm rate with more false incidents, in the words of the other one."""
    if not is_budget(alarm_rate):
        return f"{rate:.3g}"
    incidents, seconds = parse_budget("alarm_rate", alarm_rate)
    return f"{OFTENER * incidents:g}/{next(unit for unit, size in SECONDS.items() if size == seconds)}"
