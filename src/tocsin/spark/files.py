"""Folders of Parquet files in which every signal is in one file: nothing needs to be shuffled."""

from collections.abc import Sequence
from typing import Any

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

    name = "`" + id.replace("`", "``") + "`"
    places = frame.select(functions.col(name).alias("signal"), functions.input_file_name().alias("file")).distinct()
    return bool(places.groupBy("signal").count().where("count > 1").isEmpty())


def keep_files_whole(spark: Any, paths: Sequence[str]) -> None:
    """Configure Spark so that no file is split between tasks. It would split any file larger than a core's share."""
    most = largest(spark, paths)
    # A file is split at the smaller of the first and, if that is larger than a core's share, the second.
    spark.conf.set("spark.sql.files.maxPartitionBytes", str(2 * FILES_OF_A_TASK * most))
    spark.conf.set("spark.sql.files.openCostInBytes", str(most))
