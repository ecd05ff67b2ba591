"""Signals that are scored together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.detection import DetectorSettings, Fleet, Incident, Verdicts
from tocsin.service.observations import Judged

# So many signals share one call of forecaster and scorer. More would gain little, and take memory that may not be used.
ROWS = 64
# So many observations of each signal go through at once, so that memory stays small.
MOST_STEPS = 256


@dataclass(frozen=True, slots=True)
class Stretch:
    """Observations of one signal that follow each other: `values[T, F]` at `times[T]`.

    `wanted` are the positions, ascending, whose verdicts are asked for: others only have the detector learn. `foretold`
    is what was forecast after each of them, `[T, F, width]`, where somebody has kept that.
    """

    values: NDArray[np.float64]
    times: NDArray[np.datetime64]
    wanted: Sequence[int] = ()
    foretold: NDArray[np.float64] | None = None

    def split(self, foretold: NDArray[np.float64]) -> "tuple[Stretch, Stretch]":
        """Those of which is known what was forecast after them, and the rest; verdicts of neither are asked for."""
        at = len(foretold)
        return Stretch(self.values[:at], self.times[:at], (), foretold), Stretch(self.values[at:], self.times[at:])


@dataclass(slots=True)
class Taken:
    """What became of a stretch: the verdicts that were asked for, and what was forecast, `[T, F, width]`.

    The latter is None where it takes no time to forecast it again.
    """

    judged: list[Judged]
    foretold: NDArray[np.float64] | None = None


class SignalBlock:
    """A fleet with rows that signals of the same settings can have and give back."""

    def __init__(self, settings: DetectorSettings, rows: int = ROWS) -> None:
        # The fleet calls its rows by their numbers: signals may have any names, and come and go.
        self.fleet = Fleet.of([str(row) for row in range(rows)], settings)
        self.rows = rows
        self._free = list(reversed(range(rows)))
        self._used: set[int] = set()
        forecaster = self.fleet.forecaster
        self._slow = forecaster is not None and forecaster.slow

    @property
    def full(self) -> bool:
        """Whether all rows are taken."""
        return not self._free

    @property
    def empty(self) -> bool:
        """Whether no row is taken."""
        return len(self._free) == self.rows

    def take(self, state: Mapping[str, NDArray[Any]] | None) -> int:
        """A row with a detector of this state (None: a fresh one); ValueError for a state of other settings."""
        row = self._free[-1]
        if state is not None or row in self._used:
            self.fleet.put(row, state)
        self._used.add(row)
        return self._free.pop()

    def take_all(self, states: Sequence[Mapping[str, NDArray[Any]]]) -> list[int]:
        """Rows with detectors of these states; ValueError if one of them is of other settings, and none is taken."""
        rows = self._free[-len(states) :][::-1]
        self.fleet.put_all(rows, states)
        self._used.update(rows)
        del self._free[-len(states) :]
        return rows

    def release(self, row: int) -> None:
        """Give a row back."""
        self._free.append(row)

    def take_closed(self) -> list[tuple[int, Incident]]:
        """The incidents that are over since the last call, each with its row, the oldest first."""
        return [(int(incident.signal), incident) for incident in self.fleet.take_closed_incidents()]

    def forget_incidents(self, row: int) -> None:
        """Have the next alarm of this row begin a new incident."""
        self.fleet.forget_incidents(row)

    def accept(self, row: int) -> Incident:
        """End the open incident of this row because somebody said that it is none, and learn what it brought."""
        self.fleet.accept(row)
        ((_, incident),) = self.take_closed()
        return incident

    def learn_reference(self, row: int, values: NDArray[np.float64]) -> None:
        """Compare a row from now on with these values alone, `[T, F]`, whatever it has learned before."""
        self.fleet.learn_reference(values, row=row)

    def run(self, stretches: Mapping[int, Stretch]) -> dict[int, Taken]:
        """Let detectors take stretches of observations, one stretch of each row given.

        What was forecast is known after all of them, or after none.
        """
        judged: dict[int, list[Judged]] = {row: [] for row in stretches}
        noted: dict[int, list[NDArray[np.float64]]] = {row: [] for row in stretches}
        left = sorted(row for row, stretch in stretches.items() if len(stretch.times))
        at = 0
        while left:
            end = min(at + MOST_STEPS, *(len(stretches[row].times) for row in left))
            values = np.stack([stretches[row].values[at:end] for row in left], axis=1)
            times = np.stack([stretches[row].times[at:end] for row in left], axis=1)
            rows = None if len(left) == self.rows else np.array(left)
            known = [one for row in left if (one := stretches[row].foretold) is not None]
            foretold = np.stack([one[at:end] for one in known], axis=1) if known else None
            said: list[NDArray[np.float64]] = []
            noting = said.append if self._slow and foretold is None else None
            verdicts = self.fleet.run_arrays(values, rows=rows, times=times, foretold=foretold, noting=noting)
            for column, row in enumerate(left):
                noted[row] += [part[:, column] for part in said]
            wanted = {}
            for column, row in enumerate(left):
                first = len(judged[row])
                steps = [step - at for step in stretches[row].wanted[first : first + end - at] if step < end]
                if steps:
                    wanted[column] = steps
            for column, some in _columns(verdicts, wanted).items():
                judged[left[column]] += some
            at = end
            left = [row for row in left if len(stretches[row].times) > at]
        return {row: Taken(judged[row], np.concatenate(noted[row]) if noted[row] else None) for row in stretches}


def _columns(verdicts: Verdicts, wanted: Mapping[int, Sequence[int]]) -> dict[int, list[Judged]]:
    """The verdicts of signals at some steps, as they are stored."""
    if not wanted:
        return {}
    value, forecast, low, high, feature_p, p, merged, alarm, warm = (
        array.tolist()
        for array in (
            verdicts.value, verdicts.forecast, verdicts.low, verdicts.high, verdicts.feature_p, verdicts.p,
            verdicts.merged, verdicts.alarm, verdicts.warm,
        )
    )  # fmt: skip
    return {
        n: [
            Judged(
                tuple(value[t][n]), tuple(forecast[t][n]), tuple(low[t][n]), tuple(high[t][n]), p[t][n], merged[t][n],
                tuple(feature_p[t][n]), alarm[t][n], warm[t][n],
            )
            for t in steps
        ]
        for n, steps in wanted.items()
    }  # fmt: skip


def load_kernels(settings: DetectorSettings) -> None:
    """Have everything compiled and loaded that the first observation of a signal with one feature would wait for."""
    moments = np.arange(2).view("datetime64[ns]")
    SignalBlock(settings, rows=1).run({0: Stretch(np.zeros((2, 1)), moments, ())})
