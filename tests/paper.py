"""Whether Tocsin is what the paper on W1-ACAS says, in two lines of numbers: `python -m tests.paper`.

- `paper_detector_max_diff`: the largest difference of p between `preset="paper"` and a slow version written from the
  paper's pseudo-code, for Python, the command, the monitor, Spark's workers and the benchmark.
- `elements`: how many equations, propositions, lines of the algorithm, baselines, metrics, tables, figures and
  ablations of the paper `docs/paper.md` lists, and how many of them are there.
"""

import csv
import json
import re
import statistics
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from scipy.stats import chi2

from tests import oracles

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "paper.md"
STATUSES = ("exact", "partly", "missing")
CONTEXT, HORIZONS, CRITICAL = 52, 15, 99  # n_c = 1/alpha_c - 1


def slow_p(values, forecaster, *, merge="fisher", prior="extend"):
    """p of every observation of `values[T, F]`: Algorithm 1 for each horizon of each feature, then the two merges."""
    steps, features = values.shape
    found = np.full((steps, features), np.nan)
    for feature in range(features):
        session = forecaster.open(1, HORIZONS)
        issued = [session.push(values[t, [feature]]).median[0] for t in range(steps)]
        streams = [
            oracles.W1ACAS(
                critical=CRITICAL, window=5000, batch=10, stride=10, learning_rate=0.001, optimizer="adam", prior=prior
            )
            for _ in range(HORIZONS)
        ]
        for t in range(CONTEXT, steps):
            p = [stream.update(abs(values[t, feature] - issued[t - d][d - 1])) for d, stream in enumerate(streams, 1)]
            if not np.isnan(p).any():
                found[t, feature] = statistics.median(p)
    return np.array([_merged(row[~np.isnan(row)], merge) for row in found])


def _merged(p, merge):
    if len(p) < 2:
        return p[0] if len(p) else np.nan
    return chi2.sf(-2 * np.log(p).sum(), 2 * len(p)) if merge == "fisher" else statistics.harmonic_mean(p)


def example(steps=900, features=1, seed=0):
    """Waves with noise, a fault, a jump and a missing value."""
    rng = np.random.default_rng(seed)
    values = np.sin(np.arange(steps)[:, np.newaxis] / 7 + np.arange(features)) + 0.2 * rng.normal(
        size=(steps, features)
    )
    values[steps // 2] += 5
    values[2 * steps // 3 :] *= 1.5
    values[steps // 3, 0] = np.nan
    return values


def from_python(values):
    from tocsin import Detector

    return Detector(preset="paper").run(values).p


def from_command(values):
    from tests.cli.calling import csv_text, invoke

    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder, "values.csv"), Path(folder, "verdicts.csv")
        given.write_text(csv_text([repr(float(value)) if value == value else "" for value in values[:, 0]]))
        done = invoke("detect", given, "--preset", "paper", "--output", out)
        if done.exit_code:
            raise RuntimeError(done.output)
        with out.open() as file:
            return np.array([float(row["p"] or "nan") for row in csv.DictReader(file)])


def from_watch(values):
    from tests.cli.calling import csv_text, invoke

    text = csv_text([repr(float(value)) if value == value else "" for value in values[:, 0]])
    lines = [json.loads(line) for line in invoke("watch", "--preset", "paper", stdin=text).stdout.splitlines()]
    return np.array([line["p"] for line in lines if "p" in line and "value" in line], dtype=np.float64)


def from_monitor(values):
    from tests.service.engine.helpers import Rig, settings_of

    with tempfile.TemporaryDirectory() as folder:
        made = Rig(Path(folder), settings_of(detector={"preset": "paper"}))
        try:
            made.feed("a", values[:500, 0])
            made = made.restart()
            made.feed("a", values[500:, 0], made.stored("a")[-1].time + 10**9)
            return np.array([row.judged.p for row in made.stored("a")], dtype=np.float64)
        finally:
            made.close()


def from_spark_workers(values):
    """What a worker runs for two triggers of one signal; there is no cluster."""
    from tocsin.spark.plan import Clock, SparkPlan
    from tocsin.spark.step import Step

    step, state, p = Step(SparkPlan(("value",), Clock.NUMBERS, {"preset": "paper"})), None, []
    for part in np.array_split(np.arange(len(values)), 2):
        stepped = step.take("one", part.astype(float), values[part], state)
        state = stepped.state
        rows = (row for batch in stepped.rows for row in batch.to_pylist())
        p += [np.nan if row["p"] is None else row["p"] for row in rows if row["kind"] == "verdict"]
    return np.array(p)


def from_bench(values):
    from tocsin_bench.files import LabelledFile
    from tocsin_bench.forecast_errors import ForecasterChoice, make_material
    from tocsin_bench.methods import METHODS

    file = LabelledFile("one", "one", 100, values, np.zeros(len(values), dtype=bool))
    return METHODS["w1-acas"](make_material(file, ForecasterChoice("embedded", {"context_length": CONTEXT}), 15)).p


DOORS = {
    "python": from_python,
    "command": from_command,
    "watch": from_watch,
    "monitor": from_monitor,
    "spark": from_spark_workers,
    "bench": from_bench,
}


def elements():
    """The rows of the table of elements in `docs/paper.md`: element, place in the code, status."""
    found = []
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and cells[-1] in STATUSES:
            found.append((cells[0], re.findall(r"`([^`]+)`", cells[-2]), cells[-1]))
    return found


def main():
    """Measure, and print."""
    from tocsin.forecasting import EmbeddedForecaster

    values = example()
    wanted = slow_p(values, EmbeddedForecaster(context_length=CONTEXT))
    largest = 0.0
    for name, door in DOORS.items():
        p = door(values)
        if not np.array_equal(np.isnan(p), np.isnan(wanted)):
            raise RuntimeError(f"{name} has p-values at other observations")
        largest = max(largest, difference := float(np.nanmax(np.abs(p - wanted))))
        print(f"{name}: {np.isfinite(p).sum()} p-values, largest difference {difference:.2g}")
    print(f"paper_detector_max_diff={largest:.3g}")
    counts = Counter(status for *_, status in elements())
    print(f"elements={counts.total()} " + " ".join(f"{status}={counts[status]}" for status in STATUSES))


if __name__ == "__main__":
    main()
