"""`tocsin spark-detect`: detection on a cluster."""

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.application import Exit, app, console, refuse_unknown, say, whole_number
from tocsin.cli.options import check_settings, named_texts, takes_detector_settings
from tocsin.data import DataError

if TYPE_CHECKING:
    from tocsin.spark.backfill import Totals

LAYOUTS = ("auto", "whole", "mixed")


@app.command("spark-detect")
@takes_detector_settings
def spark_detect(
    source: Annotated[str, typer.Argument(metavar="IN", help="A folder of Parquet files or, with --table, a table.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="Folder for verdicts, incidents and problems.")],
    table: Annotated[bool, typer.Option("--table", help="IN is the name of a table in Spark's catalogue.")] = False,
    id: Annotated[str, typer.Option("--id", help="The column with the signal's name.")] = "id",  # noqa: A002
    time: Annotated[str, typer.Option("--time", help="The time column.")] = "time",
    value: Annotated[
        list[str] | None, typer.Option("--value", help="A value column; repeatable. Default: all numeric columns.")
    ] = None,
    layout: Annotated[
        str,
        typer.Option(
            "--layout",
            metavar="NAME",
            help="'whole': each signal is in one file, so nothing is shuffled; 'mixed'; 'auto' checks.",
        ),
    ] = "auto",
    parts: Annotated[
        int | None,
        typer.Option(
            "--parts",
            parser=whole_number(1, 100_000),
            metavar="INTEGER",
            help="Number of parts to run one by one; finished parts are skipped. Default: by observations.",
        ),
    ] = None,
    master: Annotated[
        str | None, typer.Option("--master", metavar="URL", help="The cluster. Default: Spark's own configuration.")
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option("--conf", metavar="NAME=VALUE", help="A Spark setting; repeatable.")
    ] = None,
    *,
    settings: dict[str, Any],
) -> None:
    """Find incidents in many signals on Apache Spark: Parquet or a table in, Parquet out; restartable."""
    check_settings(settings, interval_known=False)
    refuse_unknown("--layout", [layout], LAYOUTS)
    if table and layout == "whole":
        raise typer.BadParameter("'whole' works for folders of files, not for a table.", param_hint="--layout")
    given = named_texts(conf or [], "--conf")
    try:
        from tocsin.spark.backfill import BackFill
        from tocsin.spark.plan import require_spark

        require_spark()
        job = BackFill(
            source=source,
            target=target,
            id=id,
            time=time,
            values=tuple(value) if value else None,
            settings=settings,
            is_table=table,
            layout=layout,
            parts=parts,
        )
        totals = job.run(_session(master, given), say)
    except (DataError, ImportError) as error:
        say(error)
        raise typer.Exit(Exit.FAILED) from error
    _report(totals, target)
    if totals.errors:
        raise typer.Exit(Exit.FAILED)
    if totals.damage:
        raise typer.Exit(Exit.DAMAGED)


def _session(master: str | None, settings: dict[str, str]) -> Any:
    from pyspark.sql import SparkSession

    # Workers must use the Python that has tocsin. Where its path differs on a cluster, the variable gives it.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("tocsin spark-detect")
    if master is not None:
        builder = builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _report(totals: "Totals", target: str) -> None:
    screen = console()
    screen.print(f"{totals.signals} signals, {totals.verdicts} verdicts, {totals.incidents} incidents")
    screen.print(f"parts: {totals.parts}, {totals.skipped} of them done before")
    if totals.errors:
        screen.print(f"not judged: {totals.errors} signals; {target}/problems says why")
    for name in ("verdicts", "incidents", "problems"):
        screen.print(f"{name}: {target}/{name}")
