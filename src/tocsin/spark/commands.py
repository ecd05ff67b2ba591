"""The command of Tocsin on Spark in the list of commands."""

from tocsin.cli.application import FILES, ListedCommand

COMMANDS = {
    "spark-detect": ListedCommand(
        "tocsin.spark.cli",
        FILES,
        "Find incidents in many signals on Apache Spark: Parquet or a table in, Parquet out; restartable.",
    )
}
