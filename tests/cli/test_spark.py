"""`tocsin spark-detect` as far as it gets without Spark; tests/spark has the rest."""

import importlib.util
import subprocess
import sys

import pytest

from tests.cli.calling import invoke, words


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--layout", "tall"], "'tall' is not one of auto, whole, mixed."),
        (["--table", "--layout", "whole"], "'whole' works for folders of files, not for a table."),
        (["--parts", "0"], "'0' is not a whole number from 1 to 100000."),
        (["--conf", "spark.ui.enabled"], "'spark.ui.enabled' is not NAME=VALUE."),
        (["--alarm-rate", "2"], "alarm_rate"),
        (["--promise", "everything"], "promise must be one of"),
    ],
)
def test_wrong_options_are_refused_before_spark_is_started(options, message):
    result = invoke("spark-detect", "in", "out", *options)
    assert result.exit_code == 2
    assert message in words(result)


def test_without_spark_the_extra_is_named(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr("tocsin.spark.plan.find_spec", lambda name: None if name == "pyspark" else find(name))
    result = invoke("spark-detect", "in", "out")
    assert result.exit_code == 1
    assert "Spark needs pyspark: pip install 'tocsin[spark]'" in result.stderr


@pytest.mark.slow
def test_neither_the_help_nor_the_package_imports_pyspark():
    script = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import tocsin.spark, tocsin.cli\n"
        "from typer.testing import CliRunner\n"
        "print(CliRunner().invoke(tocsin.cli.app, ['spark-detect', '--help']).output)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "--layout" in done.stdout
