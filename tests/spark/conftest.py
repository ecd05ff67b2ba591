"""One session of Spark for all tests here: it takes half a minute to start.

These tests have an environment of their own (`make test-spark`). Where pyspark is not installed only those are
collected that need none; without Java the others are skipped.
"""

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

NEED_SPARK = ["test_batch.py", "test_crash.py", "test_backfill.py", "test_stream.py"]
collect_ignore = [] if find_spec("pyspark") else NEED_SPARK

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "Europe/Berlin",  # not UTC, and with an hour that is there twice
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}


def has_java():
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java") is not None or (home is not None and (Path(home) / "bin" / "java").exists())


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(item.path).parent == Path(__file__).parent and item.path.name in NEED_SPARK:
            if not has_java():
                item.add_marker(pytest.mark.skip(reason="Spark needs Java 17 or newer, and there is no java here"))
            # pyspark and what it starts leave sockets to the end, and say so.
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


def make_session():
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


@pytest.fixture(scope="session")
def spark():
    session = make_session()
    yield session
    session.stop()
