"""The rows that workers return, and the results: one table, and three views of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.data import Problem
from tocsin.detection import Incident
from tocsin.detection.incidents.incident import incident_columns
from tocsin.spark.plan import Clock, quoted

VERDICT, INCIDENT, PROBLEM = "verdict", "incident", "problem"
#: Columns that only rows of that kind have. Incidents also have `p`, `severity` and `return_period`, like verdicts.
OF_INCIDENTS = {
    "start": "time", "end": "time", "peak": "time", "duration": "bigint", "alarms": "bigint", "view": "string",
    "explanation": "string", "direction": "string", "deviation": "double", "features": "string",
    "feature_p": "string", "suspects": "string",
    "began_earliest": "time", "began_latest": "time", "open": "boolean", "ended": "string",
}  # fmt: skip
OF_PROBLEMS = {"problem": "string", "level": "string", "count": "bigint", "text": "string"}


class Layout:
    """The columns of the table: their names, and their types for Spark and for Arrow."""

    def __init__(self, features: Sequence[str], clock: Clock, *, streamed: bool) -> None:
        self.clock = clock
        single = len(features) == 1
        types = {"signal": "string", "kind": "string", **({"status": "string"} if streamed else {}), "time": "time"}
        for name in ("value", "forecast", "low", "high", "usual_low", "usual_high"):
            types |= {name if single else f"{name} {feature}": "double" for feature in features}
        types |= {"p": "double", "severity": "double", "alarm": "boolean", "merged": "double"}
        types |= {"return_period": "double", "warm": "boolean", "estimated": "boolean"}
        types |= {} if single else {f"p {feature}": "double" for feature in features}
        types |= {**OF_INCIDENTS, **OF_PROBLEMS}
        self.times = [name for name, kind in types.items() if kind == "time"]
        self.types = {name: clock.carried if kind == "time" else kind for name, kind in types.items()}

    @property
    def schema(self) -> str:
        """The columns as a Spark schema."""
        return ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in self.types.items())

    def verdicts(self, signal: str, columns: Mapping[str, NDArray[Any]]) -> Any:
        """Rows for verdicts, of the columns of `verdict_columns` (and `status`)."""
        return self._batch(signal, VERDICT, columns, len(columns["time"]))

    def incidents(self, signal: str, incidents: Sequence[Incident]) -> Any:
        """Rows for incidents."""
        columns = incident_columns(incidents)
        columns.pop("signal")
        return self._batch(signal, INCIDENT, columns, len(incidents))

    def problems(self, signal: str | None, problems: Iterable[Problem]) -> Any:
        """Rows for problems with the data of a signal, or of none."""
        found = list(problems)
        columns = {
            "problem": [one.kind for one in found],
            "level": [one.severity for one in found],
            "count": [one.count for one in found],
            "text": ["; ".join(one.where) for one in found],
        }
        return self._batch(signal, PROBLEM, columns, len(found))

    def message(self, signal: str, problem: str, level: str, text: str) -> Any:
        """A row that says why there is no result (level "error"), or what to keep in mind ("note")."""
        columns = {"problem": [problem], "level": [level], "count": [1], "text": [text]}
        return self._batch(signal, PROBLEM, columns, 1)

    def _batch(self, signal: str | None, kind: str, columns: Mapping[str, Any], count: int) -> Any:
        import pyarrow as pa

        kinds = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64(), "boolean": pa.bool_()}
        given = {**columns, "signal": [signal] * count, "kind": [kind] * count}
        arrays = [
            pa.array(self._plain(name, given[name]), kinds[type_], from_pandas=True)
            if name in given
            else pa.nulls(count, kinds[type_])
            for name, type_ in self.types.items()
        ]
        return pa.RecordBatch.from_arrays(arrays, names=list(self.types))

    def _plain(self, name: str, column: Any) -> Any:
        if name in self.times and self.clock is not Clock.NUMBERS:
            times = np.asarray(column).astype("datetime64[us]")
            return [None if np.isnat(time) else int(time.astype(np.int64)) for time in times]
        return column.tolist() if isinstance(column, np.ndarray) and column.dtype.kind in "OU" else column


_INCIDENT = (
    "signal", "start", "end", "peak", "duration", "alarms", "p", "severity", "return_period", "view", "explanation",
    "direction", "deviation", "features", "feature_p", "suspects", "began_earliest", "began_latest", "open", "ended",
)  # fmt: skip


@dataclass(frozen=True)
class Findings:
    """Verdicts, incidents and problems of all signals.

    Attributes
    ----------
    rows : one table with all of them, distinguished by its column `kind`. Spark computes nothing before rows are
        requested, and everything again for every use: write it, or `persist` it, before using several views.
    """

    rows: Any

    @property
    def verdicts(self) -> Any:
        """One row per observation, with the columns of `Detector.detect` and the signal."""
        others = {"kind", *OF_INCIDENTS, *OF_PROBLEMS}
        return self._only(VERDICT, [name for name in self.rows.columns if name not in others])

    @property
    def incidents(self) -> Any:
        """One row per incident, with the columns of `tocsin detect --incidents`."""
        return self._only(INCIDENT, list(_INCIDENT))

    @property
    def problems(self) -> Any:
        """Problems with the data, and which signals could not be judged and why (`level` is "error")."""
        return self._only(PROBLEM, ["signal", *OF_PROBLEMS])

    def write(self, folder: str, part: str) -> None:
        """Write the three tables as Parquet: `folder/verdicts/part`, and so on; existing files are replaced.

        For parts of a back-fill and for `foreachBatch`: writing a part again changes nothing. `rows` are used three
        times: `persist` them first.
        """
        for name in ("verdicts", "incidents", "problems"):
            getattr(self, name).write.mode("overwrite").parquet(f"{folder}/{name}/{part}")

    def _only(self, kind: str, columns: list[str]) -> Any:
        from pyspark.sql import functions

        return self.rows.where(functions.col("kind") == kind).select(*map(quoted, columns))
