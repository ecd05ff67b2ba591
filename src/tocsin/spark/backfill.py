"""A back-fill in parts: each is written completely, and finished ones are skipped.

`target` gets the folders `verdicts`, `incidents` and `problems`, each with a folder for every part, and `done` with a
line for every finished part. Spark writes all of it, so `target` may be anywhere Spark can write.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tocsin.data import DataError
from tocsin.spark.batch import detect
from tocsin.spark.plan import quoted
from tocsin.spark.rows import Findings

#: About how many files a task reads: enough to hide the cost of starting a task, few enough to keep cores busy.
FILES_OF_A_TASK = 8


def largest(spark: Any, paths: Sequence[str]) -> int:
    """The bytes of the largest of these files."""
    from pyspark.sql import functions

    listed = spark.read.format("binaryFile").load(list(paths))  # Spark reads only their lengths
    return int(listed.agg(functions.max("length")).first()[0])


def files_of(frame: Any) -> list[str]:
    """The files that a table is read from, in order."""
    return sorted(frame.inputFiles())


def is_whole(frame: Any, id: str) -> bool:  # noqa: A002
    """Whether no signal is in more than one file. Only the column of ids is read."""
    from pyspark.sql import functions

    name = quoted(id)
    places = frame.select(functions.col(name).alias("signal"), functions.input_file_name().alias("file")).distinct()
    return bool(places.groupBy("signal").count().where("count > 1").isEmpty())


def keep_files_whole(spark: Any, paths: Sequence[str]) -> None:
    """Configure Spark so that no file is split between tasks. It would split any file larger than a core's share."""
    most = largest(spark, paths)
    # A file is split at the smaller of the first and, if that is larger than a core's share, the second.
    spark.conf.set("spark.sql.files.maxPartitionBytes", str(2 * FILES_OF_A_TASK * most))
    spark.conf.set("spark.sql.files.openCostInBytes", str(most))


#: About how many observations a part has: minutes of work for a few dozen cores.
OBSERVATIONS = 10_000_000
MOST_PARTS = 1000
_DONE = "part INT, run STRING, signals BIGINT, verdicts BIGINT, incidents BIGINT, damage BIGINT, errors BIGINT"


@dataclass(frozen=True)
class Totals:
    """What was done: all parts and those done before, signals, verdicts, incidents and failures."""

    parts: int
    skipped: int
    signals: int
    verdicts: int
    incidents: int
    damage: int
    errors: int


@dataclass(frozen=True)
class BackFill:
    """The work to do. `source` is a folder of Parquet files or, with `is_table`, a table of the catalogue."""

    source: str
    target: str
    id: str
    time: str
    values: tuple[str, ...] | None
    settings: Mapping[str, Any]
    is_table: bool = False
    layout: str = "auto"
    parts: int | None = None

    def run(self, spark: Any, tell: Callable[[str], None]) -> Totals:
        """Run all unfinished parts, one by one. `tell` receives a message for each."""
        frame = spark.table(self.source) if self.is_table else spark.read.parquet(self.source)
        detect(frame, **self._arguments())  # reports wrong columns and settings before any work
        observations = frame.count()
        if not observations:
            raise DataError(f"{self.source} has no rows")
        parts = self.parts or min(-(-observations // OBSERVATIONS), MOST_PARTS)
        whole = self._is_whole(frame)
        run = self._described(parts, whole, observations)
        known = self._done(spark, run)
        tell(f"{observations} observations, {'whole in their files' if whole else 'to be shuffled'}, {parts} parts")
        if whole:
            keep_files_whole(spark, files_of(frame))
        for part in range(parts):
            if part in known:
                tell(f"part {part + 1} of {parts}: already done")
                continue
            self._do(spark, frame, part, parts, whole=whole, run=run)
            tell(f"part {part + 1} of {parts}: done")
        return self._totals(spark, parts, len(known))

    def _arguments(self) -> dict[str, Any]:
        return {"id": self.id, "time": self.time, "values": self.values, **self.settings}

    def _is_whole(self, frame: Any) -> bool:
        if self.layout != "auto" or self.is_table:
            return self.layout == "whole"
        return is_whole(frame, self.id)

    def _described(self, parts: int, whole: bool, observations: int) -> dict[str, Any]:
        """What must be equal for parts to belong together."""
        described = {**self._arguments(), "source": self.source, "parts": parts, "whole": whole}
        return dict(json.loads(json.dumps({**described, "observations": observations})))

    def _done(self, spark: Any, run: Mapping[str, Any]) -> set[int]:
        from pyspark.errors import AnalysisException

        try:
            rows = self._lines(spark).collect()
        except AnalysisException:
            return set()  # nothing is done yet
        for row in rows:
            before = json.loads(row["run"])
            for name in sorted({*before, *run}):
                if before.get(name) != run.get(name):
                    raise DataError(
                        f"{self.target} was begun with {name}={before.get(name)!r}, got {run.get(name)!r}: "
                        "use the same settings, or another folder"
                    )
        return {row["part"] for row in rows}

    def _do(self, spark: Any, frame: Any, part: int, parts: int, *, whole: bool, run: Mapping[str, Any]) -> None:
        from pyspark import StorageLevel
        from pyspark.sql import functions

        if whole:
            mine = files_of(frame)[part::parts]
            some = spark.read.option("basePath", self.source).schema(frame.schema).parquet(*mine) if mine else None
        else:
            column = functions.col(quoted(self.id)).cast("string")
            share = functions.pmod(functions.xxhash64(functions.trim(column)), parts)
            some = frame.where(share == part)
        counts = {"signals": 0, "verdicts": 0, "incidents": 0, "damage": 0, "errors": 0}
        if some is not None:
            rows = detect(some, whole=whole, **self._arguments()).rows.persist(StorageLevel.DISK_ONLY)
            try:
                Findings(rows).write(self.target, f"part={part}")
                counts = _counts(rows)
            finally:
                rows.unpersist()
        line = spark.createDataFrame([{"part": part, "run": json.dumps(run), **counts}], _DONE)
        line.coalesce(1).write.mode("overwrite").json(f"{self.target}/done/{part}")

    def _lines(self, spark: Any) -> Any:
        return spark.read.schema(_DONE).option("recursiveFileLookup", True).json(f"{self.target}/done")

    def _totals(self, spark: Any, parts: int, skipped: int) -> Totals:
        from pyspark.sql import functions

        names = ("signals", "verdicts", "incidents", "damage", "errors")
        done = self._lines(spark)
        sums = done.agg(*(functions.sum(name).alias(name) for name in names)).first()
        return Totals(parts, skipped, *(int(sums[name]) for name in names))


def _counts(rows: Any) -> dict[str, int]:
    from pyspark.sql import functions

    def of(condition: str) -> Any:
        return functions.count_if(functions.expr(condition))

    counted = rows.agg(
        functions.count_distinct("signal").alias("signals"),
        of("kind = 'verdict'").alias("verdicts"),
        of("kind = 'incident'").alias("incidents"),
        functions.sum(functions.expr("if(level = 'damage', count, 0)")).alias("damage"),
        of("level = 'error'").alias("errors"),
    ).first()
    return {name: int(counted[name] or 0) for name in ("signals", "verdicts", "incidents", "damage", "errors")}
