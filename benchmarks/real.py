"""What the default detector finds in real files with labels: three of NAB at one incident a week, and SKAB.

    python benchmarks/real.py --nab FOLDER --skab FOLDER

NAB (github.com/numenta/NAB): a folder with the files named below and `windows.json`, the labelled windows of each file
(`combined_windows.json` with file names as keys). A window is hit if an incident overlaps it. SKAB
(github.com/waico/SKAB): a folder of its CSV files; the first 400 rows of each are the reference, and every later row
counts as found while an incident is open. The published numbers are those of the SKAB leaderboard for outlier
detection: F1, false-alarm and missed-alarm rate over all 34 experiments.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tocsin.detection import Detector

NAB = {"machine_temperature_system_failure": "5min", "nyc_taxi": "30min", "ambient_temperature_system_failure": "1h"}
BUDGET = "1/week"
REFERENCE, SOON = 400, 30
SKAB_RATE = 0.001
PUBLISHED = {
    "Conv-AE": (0.78, 0.1355, 0.2802),
    "MSET": (0.78, 0.3973, 0.1413),
    "T-squared+Q (PCA)": (0.76, 0.2662, 0.2492),
    "Isolation forest": (0.29, 0.0256, 0.8289),
}


def measure_nab(folder, name, interval):
    """`(windows hit, windows, incidents, weeks)`; a window that ends before alarms are raised does not count."""
    frame = pd.read_csv(folder / f"{name}.csv", parse_dates=["timestamp"])
    series = frame.drop_duplicates("timestamp").set_index("timestamp")["value"].asfreq(interval)
    detector = Detector(alarm_rate=BUDGET, interval=interval)
    detector.run(series.to_numpy())
    windows = json.loads((folder / "windows.json").read_text())[f"{name}.csv"]
    spans = [(series.index[one.first], series.index[one.last]) for one in detector.incidents]
    hits = [any(start <= end_of and end >= start_of for start, end in spans)
            for start_of, end_of in map(pd.to_datetime, windows)]  # fmt: skip
    weeks = (series.index[-1] - series.index[0]) / pd.Timedelta("7D")
    return hits, len(spans), weeks


def measure_skab(path):
    """`(open, labelled, seconds from the onset to the first observation under an incident)` after the reference."""
    frame = pd.read_csv(path, sep=";")
    labels = frame["anomaly"].to_numpy() == 1
    values = frame.drop(columns=["datetime", "anomaly", "changepoint"]).to_numpy(float)
    detector = Detector(values.shape[1], alarm_rate=SKAB_RATE)
    detector.learn_reference(values[:REFERENCE])
    found = detector.run(values[REFERENCE:]).open
    labels = labels[REFERENCE:]
    onset = int(np.argmax(labels))
    told = np.flatnonzero(found[onset:])
    return found, labels, told[0] if labels.any() and told.size else np.inf


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nab", type=Path)
    parser.add_argument("--skab", type=Path)
    given = parser.parse_args()
    if given.nab is None and given.skab is None:
        sys.exit("give --nab or --skab, or both: folders with their files")
    screen, line = Console(width=120, highlight=False), {}
    if given.nab is not None:
        table = Table(box=SIMPLE_HEAD, title=f"NAB at {BUDGET}")
        for heading in ("file", "windows hit", "incidents", "promised"):
            table.add_column(heading, justify="left" if heading == "file" else "right")
        for name, interval in NAB.items():
            hits, incidents, weeks = measure_nab(given.nab, name, interval)
            table.add_row(name, " ".join("yes" if hit else "no" for hit in hits), str(incidents), f"{weeks:.0f}")
            short = name.split("_")[0]
            line |= {f"{short}_hit": f"{sum(hits)}/{len(hits)}", f"{short}_incidents": incidents}
        screen.print(table)
    if given.skab is not None:
        measured = {path.name: measure_skab(path) for path in sorted(given.skab.glob("*.csv"))}
        found, labels = (np.concatenate([one[part] for one in measured.values()]) for part in (0, 1))
        hit, false, missed = (found & labels).sum(), (found & ~labels).sum(), (~found & labels).sum()
        ours = (2 * hit / (2 * hit + false + missed), false / (~labels).sum(), missed / labels.sum())
        onset = np.mean([delay <= SOON for *_, delay in measured.values()])
        table = Table(box=SIMPLE_HEAD, title=f"SKAB, {len(measured)} files, reference of {REFERENCE} rows")
        for heading in ("method", "F1", "false alarms", "missed alarms", f"onset told in {SOON} s"):
            table.add_column(heading, justify="left" if heading == "method" else "right")
        table.add_row("Tocsin", f"{ours[0]:.3f}", f"{ours[1]:.3f}", f"{ours[2]:.3f}", f"{onset:.2f}")
        for name, numbers in PUBLISHED.items():
            table.add_row(f"{name} (published, all files)", *(f"{number:.3f}" for number in numbers), "")
        screen.print(table)
        line |= {"skab_f1": f"{ours[0]:.3f}", "skab_false": f"{ours[1]:.3f}", "skab_missed": f"{ours[2]:.3f}",
                 "skab_onset": f"{onset:.2f}"}  # fmt: skip
    print(" ".join(f"{name}={value}" for name, value in line.items()))


if __name__ == "__main__":
    main()
