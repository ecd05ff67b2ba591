"""Histories of many signals on a cluster."""

from collections.abc import Iterable
from typing import Any

from tocsin.spark.columns import as_times, carried, choose
from tocsin.spark.extra import require_spark
from tocsin.spark.findings import Findings
from tocsin.spark.partition import DetectPartition
from tocsin.spark.plan import make_plan
from tocsin.spark.rows import Layout


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
    """Verdicts, incidents and problems of all signals in a table of Spark, with the numbers of one machine.

    Parameters
    ----------
    frame : the table, a row for each observation, in any order.
    id, time : the columns that say which signal a row is of, and when it was observed.
    values : the column of values, or those of several features; all other numeric columns if None.
    whole : each signal is within one partition of the table already, so that nothing needs to be shuffled. One that is
        not would be judged in pieces.
    partitions : into how many partitions signals are shuffled; `spark.sql.shuffle.partitions` if None.
    **settings : those of `Detector`. The forecaster is given by its name. Without an `interval`, each signal's own is
        found, as `tocsin detect` does.
    """
    require_spark()
    given = choose(frame, id=id, time=time, values=values)
    plan = make_plan(given, settings, interval_known=False, shuffled=not whole)
    table = carried(frame, given)
    if not whole:
        count = partitions or int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))
        # By number: Spark would merge partitions of few bytes, and forget how much work is in each byte.
        table = table.repartition(count, "signal")
    layout = Layout(plan.features, plan.clock, streamed=False)
    return Findings(with_times(table.mapInArrow(DetectPartition(plan), layout.schema), layout))


def with_times(rows: Any, layout: Layout) -> Any:
    """The table that came back, with times in the type that they had."""
    return rows.select(
        *(
            as_times(name, layout.clock) if name in layout.times else rows["`" + name.replace("`", "``") + "`"]
            for name in layout.types
        )
    )
