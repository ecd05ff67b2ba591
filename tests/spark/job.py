"""A query over the files of a folder, for a process of its own: `python -m tests.spark.job FOLDER`."""

import sys

import tocsin.spark
from tests.spark.conftest import make_session
from tests.spark.helpers import QUICK


def main():
    folder = sys.argv[1]
    spark = make_session()
    # The process to kill: Python's is another.
    print(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid(), flush=True)
    schema = "id string, time timestamp, value double"
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(f"{folder}/in")
    query = tocsin.spark.watch(stream, **QUICK).rows.writeStream.format("parquet")
    query = query.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
    query.start(f"{folder}/out").awaitTermination()


if __name__ == "__main__":
    main()
