"""Detection in the histories of many signals on a cluster."""

from collections.abc import Iterable
from typing import Any

from tocsin.spark.partition import DetectPartition
from tocsin.spark.plan import as_times, carried, choose, make_plan, quoted, require_spark
from tocsin.spark.rows import Findings, Layout


def detect(
    frame: Any,
    *,
    id: str = "id",  # noqa: A002
    time: str = "time",
    values: str | Iterable[str] | None = None,
    whole: bool = False,
    partitions: int | None = None,
    **settings: Any,
) -> Findings:
    """Verdicts, incidents and problems of all signals in a Spark table, with the same numbers as on one machine.

    Parameters
    ----------
    frame : the table with one row per observation, in any order.
    id, time : the columns with the signal's name and the time.
    values : the value column, or those of several features; all other numeric columns if None.
    whole : each signal is already within one partition of the table, so that no shuffle is needed. A signal in several
        partitions would be judged in pieces.
    partitions : into how many partitions signals are shuffled; `spark.sql.shuffle.partitions` if None.
    **settings : those of `Detector`. The forecaster is given by name. Without an `interval`, that of each signal is
        inferred, as by `tocsin detect`.
    """
    require_spark()
    given = choose(frame, id=id, time=time, values=values)
    plan = make_plan(given, settings, interval_known=False, shuffled=not whole)
    table = carried(frame, given)
    if not whole:
        count = partitions or int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))
        # By number: Spark would merge small partitions, although each byte is much work.
        table = table.repartition(count, "signal")
    layout = Layout(plan.features, plan.clock, streamed=False)
    return Findings(with_times(table.mapInArrow(DetectPartition(plan), layout.schema), layout))


def with_times(rows: Any, layout: Layout) -> Any:
    """The result table, with times in their original type."""
    return rows.select(
        *(as_times(name, layout.clock) if name in layout.times else rows[quoted(name)] for name in layout.types)
    )
