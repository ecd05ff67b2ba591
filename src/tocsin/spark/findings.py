"""The results from Spark: one table, and three views of it."""

from dataclasses import dataclass
from typing import Any

from tocsin.spark.rows import INCIDENT, OF_INCIDENTS, OF_PROBLEMS, PROBLEM, VERDICT

_INCIDENT = (
    "signal", "start", "end", "peak", "duration", "alarms", "p", "severity", "return_period", "view", "explanation",
    "direction", "deviation", "features", "open", "ended",
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

        quoted = ["`" + name.replace("`", "``") + "`" for name in columns]
        return self.rows.where(functions.col("kind") == kind).select(*quoted)
