"""A fleet's results for the histories of many signals."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tocsin.data import Origin
from tocsin.detection.incidents import Incident
from tocsin.detection.result import Result, drawn, incident_frame


class Results(Mapping[str, Result]):
    """The results of many signals by name, and all of them as frames, a picture or a page.

    `id` is the name of the column with the signal's name.
    """

    def __init__(self, results: Mapping[str, Result], origin: Origin, id: str = "signal") -> None:  # noqa: A002
        self._results, self.origin, self.id = dict(results), origin, id

    def __getitem__(self, signal: str) -> Result:
        return self._results[signal]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    @property
    def frame(self) -> Any:
        """All verdicts as one long frame, signal by signal."""
        names = [np.full(len(result), name, dtype=object) for name, result in self.items()]
        columns: dict[str, Any] = {self.id: np.concatenate(names)}
        parts = [result.columns for result in self.values()]
        for name in parts[0]:
            columns.setdefault(name, np.concatenate([part[name] for part in parts]))
        return self.origin.frame(columns)

    @property
    def incident_list(self) -> list[Incident]:
        """The incidents of all signals, signal by signal."""
        return [incident for result in self.values() for incident in result.incident_list]

    @property
    def incidents(self) -> Any:
        """The incidents as a frame, one row each."""
        dated = any(result.times is not None and result.times.dtype.kind == "M" for result in self.values())
        return incident_frame(self.incident_list, self.origin, dated=dated)

    def plot(self) -> Any:
        """A picture of the signals with the worst incidents; see `Result.plot`."""
        return drawn(list(self.values()))

    def __repr__(self) -> str:
        from tocsin.reports.notebook import results_text

        return results_text(list(self.values()))

    def _repr_html_(self) -> str:
        from tocsin.reports.notebook import results_html

        return results_html(list(self.values()))
