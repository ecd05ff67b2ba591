"""`tocsin simulate`, and what all commands share."""

import csv
import io
import os
import subprocess
import sys

import numpy as np
import pytest

import tocsin
from tests.cases import full
from tests.cli.calling import invoke
from tocsin.evaluation import METHODS, SCENARIOS

SMALL = ["simulate", "--realisations", "2", "--length", "400"]


def test_version():
    result = invoke("--version")
    assert result.exit_code == 0
    assert result.stdout.strip() == f"tocsin {tocsin.__version__}"


def test_no_command_shows_help():
    assert "simulate" in invoke().output


@pytest.mark.slow
@pytest.mark.parametrize("scenarios", [("iid",), full(tuple(SCENARIOS))], ids=len)
def test_simulate_prints_writes_and_draws(scenarios, tmp_path):
    chosen = [] if scenarios == tuple(SCENARIOS) else [word for name in scenarios for word in ("--scenario", name)]
    result = invoke(*SMALL, *chosen, "--out", tmp_path / "deep" / "er")
    assert result.exit_code == 0, result.output
    for name in (*scenarios, *METHODS):
        assert name in result.stdout
    with (tmp_path / "deep" / "er" / "simulation.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["scenario"], row["method"]) for row in rows] == [(s, m) for s in scenarios for m in METHODS]
    assert all(0 <= float(row["gap"]) <= 0.5 for row in rows)
    assert {"error_0.0-0.1", "error_0.9-1.0", "rate_0.01", "rate_0.05", "rate_0.1"} <= rows[0].keys()
    picture = tmp_path / "deep" / "er" / "simulation.png"
    assert picture.read_bytes().startswith(b"\x89PNG")

    from matplotlib.image import imread

    pixels = imread(picture)
    assert pixels.shape[0] > 350 * len(scenarios)
    assert np.unique(pixels[..., :3].reshape(-1, 3), axis=0).shape[0] > 50


def test_simulate_what_was_asked_for(tmp_path):
    chosen = ["--scenario", "iid", "--method", "split-100", "--method", "window-n_c", "--no-plot", "--seed", "5"]
    result = invoke(*SMALL, *chosen, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    with (tmp_path / "simulation.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["scenario"], row["method"], row["seed"]) for row in rows] == [
        ("iid", "window-n_c", "5"),
        ("iid", "split-100", "5"),
    ]
    assert not (tmp_path / "simulation.png").exists()
    assert "window-2000" not in result.stdout


def test_same_seed_same_file(tmp_path):
    for folder in ("a", "b"):
        invoke(*SMALL, "--no-plot", "--seed", "9", "--scenario", "switching", "--out", tmp_path / folder)
    assert (tmp_path / "a" / "simulation.csv").read_bytes() == (tmp_path / "b" / "simulation.csv").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--scenario", "earthquake"], ["--scenario", "'earthquake'", "jump-shift"]),
        (["--method", "guess"], ["--method", "'guess'", "w1-acas-extend"]),
        (["--realisations", "0"], ["--realisations", "'0'", "from 1 to"]),
        (["--length", "10"], ["--length", "'10'", "from 200 to"]),
        (["--seed", "-1"], ["--seed", "'-1'", "from 0 to"]),
        (["--seed", "x"], ["--seed", "'x'", "whole number"]),
        (["--threads", "1.5"], ["--threads", "'1.5'", "from 1 to"]),
    ],
)
def test_bad_options_are_named(arguments, words, tmp_path):
    result = invoke(*SMALL, *arguments, "--out", tmp_path / "out")
    assert result.exit_code == 2
    message = " ".join(result.output.replace("│", " ").split())
    for word in words:
        assert word in message
    assert not (tmp_path / "out").exists()


def test_more_than_memory_holds(tmp_path):
    result = invoke("simulate", "--realisations", 10**9, "--length", 10**7, "--no-plot", "--out", tmp_path)
    assert result.exit_code == 2
    assert "--realisations, --length" in result.output


@pytest.mark.parametrize("columns", [80, 200])
def test_tables_fit_a_terminal(columns):
    from rich.console import Console

    from tocsin.evaluation import simulate, simulation_report

    results = list(simulate(list(SCENARIOS.values()), list(METHODS.values()), realisations=2, seed=0, length=300))
    console = Console(width=columns, record=True, file=io.StringIO())
    for table in (simulation_report.summary_table(results), simulation_report.decile_table(results)):
        console.print(table)
    text = console.export_text()
    assert "…" not in text
    assert "w1-acas-recent" in text


@pytest.mark.slow
def test_results_are_kept_when_nobody_reads_the_tables(tmp_path):
    arguments = [sys.executable, "-m", "tocsin", *SMALL, "--scenario", "iid", "--no-plot", "--out", str(tmp_path)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    process.communicate()
    assert (tmp_path / "simulation.csv").read_text().count("\n") == 1 + len(METHODS)


@pytest.mark.slow
def test_an_output_that_knows_only_ascii(tmp_path):
    arguments = [sys.executable, "-m", "tocsin", *SMALL, "--scenario", "iid", "--no-plot", "--out", str(tmp_path)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    result = subprocess.run(arguments, capture_output=True, env=environment, check=True)
    assert b"split-100" in result.stdout


def test_a_folder_in_the_way_of_a_result(tmp_path):
    (tmp_path / "simulation.csv").mkdir()
    result = invoke(*SMALL, "--out", tmp_path)
    assert result.exit_code == 2
    assert "simulation.csv" in "".join(result.output.replace("│", " ").split())


def test_a_file_in_the_way_of_the_folder(tmp_path):
    (tmp_path / "taken").write_text("mine")
    result = invoke(*SMALL, "--out", tmp_path / "taken")
    assert result.exit_code == 2
    assert "--out" in result.output
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.slow
def test_without_matplotlib_the_extra_is_named(tmp_path):
    script = "import sys; sys.modules['matplotlib'] = None; from tocsin.cli import app; app()"
    arguments = [sys.executable, "-c", script, *SMALL, "--scenario", "iid", "--out", str(tmp_path)]
    refused = subprocess.run(arguments, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "tocsin[plot]" in refused.stderr
    assert subprocess.run([*arguments, "--no-plot"], capture_output=True).returncode == 0


@pytest.mark.slow
def test_tables_are_whole_when_piped_and_progress_goes_elsewhere(tmp_path):
    arguments = [sys.executable, "-m", "tocsin", *SMALL, "--scenario", "random-shift", "--no-plot", "--out", tmp_path]
    result = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert "<0.9" in result.stdout
    assert "…" not in result.stdout
    assert "starting" not in result.stdout
