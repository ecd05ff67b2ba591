"""What the default detector finds in real files with labels: NAB at one incident a week, and SKAB.

    python benchmarks/real.py --nab FOLDER --skab FOLDER

NAB (github.com/numenta/NAB): a folder with files of it and `windows.json`, the labelled windows of each file
(`combined_windows.json` with file names as keys). A window is hit if an incident overlaps it; one that ends before
alarms can be raised does not count. Its rank is that of the most severe of these incidents among all of the file: for
the files named below, so many of the most severe are what an operator would look at. SKAB (github.com/waico/SKAB): a
folder of its CSV files; the first 400 rows of each are the reference, and every later row counts as found while an
incident is open. F1, false-alarm and missed-alarm rate are those of SKAB's own script: rows of all files are counted
together. Its README has two leaderboards for outlier detection, and so has the table: the strict one counts the rows
after the first 400 only, the other all rows, where nothing is found in the first 400. Both are over all 34 experiments.
Then the same files without a reference, at the default alarm rate: in how many of them an incident overlaps the fault,
and how many incidents do not.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tocsin.detection import Detector

LOOKED_AT = {
    "nyc_taxi": ("taxi", 8),
    "machine_temperature_system_failure": ("machine", 6),
    "ambient_temperature_system_failure": ("ambient", 5),
}
BUDGET = "1/week"
REFERENCE, SOON = 400, 30
# With a reference, and without.
SKAB_RATE, ALONE_RATE = 0.001, 0.01
PUBLISHED = {
    "strict": {
        "Conv-AE": (0.78, 0.1355, 0.2802),
        "MSET": (0.78, 0.3973, 0.1413),
        "T-squared+Q (PCA)": (0.76, 0.2662, 0.2492),
        "Isolation forest": (0.29, 0.0256, 0.8289),
    },
    "all rows": {
        "Conv-AE": (0.77, 0.0638, 0.2965),
        "MSET": (0.77, 0.1793, 0.1608),
        "T-squared+Q (PCA)": (0.75, 0.1209, 0.2662),
        "Isolation forest": (0.28, 0.0116, 0.8328),
    },
}


@dataclass
class NabFile:
    """What was found in one file; the rank of a window that was missed is infinite."""

    name: str
    ranks: list[float]
    incidents: int
    outside: int
    weeks: float

    @property
    def hits(self):
        return sum(np.isfinite(self.ranks))

    def among(self, most):
        """How many windows are among this many of the most severe incidents."""
        return sum(rank <= most for rank in self.ranks)


def measure_nab(path, windows):
    """One file of NAB; a window that ends before alarms are raised does not count."""
    frame = pd.read_csv(path, parse_dates=["timestamp"])
    series = frame.drop_duplicates("timestamp").set_index("timestamp")["value"]
    interval = series.index.to_series().diff().median()
    regular = series.asfreq(interval)
    # A few files have no fixed interval: their values count one by one.
    series = regular if regular.count() > 0.9 * len(series) else series
    detector = Detector(alarm_rate=BUDGET, interval=interval)
    detector.run(series.to_numpy())
    incidents = sorted(detector.incidents, key=lambda one: -one.severity)
    spans = [(series.index[one.first], series.index[one.last]) for one in incidents]
    first = series.index[min(detector.warm_up, len(series) - 1)]
    counted = [pair for pair in map(pd.to_datetime, windows) if pair[1] >= first]
    overlaps = [[start <= end_of and end >= start_of for start, end in spans] for start_of, end_of in counted]
    ranks = [row.index(True) + 1 if any(row) else np.inf for row in overlaps]
    outside = len(spans) - sum(map(any, zip(*overlaps, strict=True)))
    weeks = (series.index[-1] - first) / pd.Timedelta("7D")
    return NabFile(path.stem, ranks, len(spans), outside, weeks)


def read_skab(path):
    """The sensors' values, and which rows are labelled."""
    frame = pd.read_csv(path, sep=";")
    return frame.drop(columns=["datetime", "anomaly", "changepoint"]).to_numpy(float), frame["anomaly"].to_numpy() == 1


def measure_skab(path):
    """`(open, labelled, seconds from the onset to the first observation under an incident)` of all rows."""
    values, labels = read_skab(path)
    detector = Detector(values.shape[1], alarm_rate=SKAB_RATE)
    detector.learn_reference(values[:REFERENCE])
    found = np.concatenate([np.zeros(REFERENCE, dtype=bool), detector.run(values[REFERENCE:]).open])
    onset = int(np.argmax(labels))
    told = np.flatnonzero(found[onset:])
    return found, labels, told[0] if labels.any() and told.size else np.inf


def without_reference(path):
    """Whether an incident overlaps the fault where the detector is told nothing, and how many incidents do not."""
    values, labels = read_skab(path)
    detector = Detector(values.shape[1], alarm_rate=ALONE_RATE)
    detector.run(values)
    overlaps = [bool(labels[one.first : one.last + 1].any()) for one in detector.incidents]
    return any(overlaps), overlaps.count(False)


def skab_scores(found, labels):
    """F1, false-alarm rate and missed-alarm rate, by row."""
    hit, false, missed = (found & labels).sum(), (found & ~labels).sum(), (~found & labels).sum()
    return 2 * hit / (2 * hit + false + missed), false / (~labels).sum(), missed / labels.sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nab", type=Path)
    parser.add_argument("--skab", type=Path)
    given = parser.parse_args()
    if given.nab is None and given.skab is None:
        sys.exit("give --nab or --skab, or both: folders with their files")
    screen, line = Console(width=120, highlight=False), {}
    if given.nab is not None:
        windows = json.loads((given.nab / "windows.json").read_text())
        files = [measure_nab(path, windows[path.name]) for path in sorted(given.nab.glob("*.csv"))]
        table = Table(box=SIMPLE_HEAD, title=f"NAB at {BUDGET}")
        for heading in ("file", "ranks of the windows", "among the first", "incidents", "outside", "promised"):
            table.add_column(heading, justify="left" if heading == "file" else "right")
        for file in files:
            ranks = " ".join(f"{rank:.0f}" if np.isfinite(rank) else "missed" for rank in file.ranks)
            short, most = LOOKED_AT.get(file.name, (None, None))
            among = "" if short is None else f"{file.among(most)} of {len(file.ranks)} among {most}"
            table.add_row(file.name, ranks, among, str(file.incidents), str(file.outside), f"{file.weeks:.0f}")
            if short is not None:
                line |= {f"{short}_in_top{most}": file.among(most), f"{short}_hit": f"{file.hits}/{len(file.ranks)}",
                         f"{short}_incidents": file.incidents}  # fmt: skip
        line |= {"windows_hit": sum(file.hits for file in files), "windows": sum(len(file.ranks) for file in files),
                 "outside": sum(file.outside for file in files),
                 "promised": f"{sum(file.weeks for file in files):.0f}"}  # fmt: skip
        screen.print(table)
    if given.skab is not None:
        measured = {path.name: measure_skab(path) for path in sorted(given.skab.glob("*.csv"))}
        strict, everything = (
            skab_scores(*(np.concatenate([one[part][first:] for one in measured.values()]) for part in (0, 1)))
            for first in (REFERENCE, 0)
        )
        onset = np.mean([delay <= SOON for *_, delay in measured.values()])
        table = Table(box=SIMPLE_HEAD, title=f"SKAB, {len(measured)} files, reference of {REFERENCE} rows")
        for heading in ("counted", "method", "F1", "false alarms", "missed alarms", f"onset told in {SOON} s"):
            table.add_column(heading, justify="left" if heading in ("counted", "method") else "right")
        for counted, ours in (("strict", strict), ("all rows", everything)):
            table.add_row(counted, "Tocsin", *(f"{number:.3f}" for number in ours), f"{onset:.2f}")
            for name, numbers in PUBLISHED[counted].items():
                table.add_row("", f"{name} (published, all files)", *(f"{number:.3f}" for number in numbers), "")
        screen.print(table)
        alone = [without_reference(path) for path in sorted(given.skab.glob("*.csv"))]
        hits, others = sum(hit for hit, _ in alone), sum(false for _, false in alone)
        screen.print(f"without a reference: {hits} of {len(alone)} faults found, {others} other incidents")
        line |= {"skab_f1": f"{strict[0]:.3f}", "skab_false": f"{strict[1]:.3f}", "skab_missed": f"{strict[2]:.3f}",
                 "skab_all_f1": f"{everything[0]:.3f}", "skab_all_false": f"{everything[1]:.3f}",
                 "skab_all_missed": f"{everything[2]:.3f}", "skab_onset": f"{onset:.2f}",
                 "skab_alone": f"{hits}/{len(alone)}", "skab_alone_false": others}  # fmt: skip
    print(" ".join(f"{name}={value}" for name, value in line.items()))


if __name__ == "__main__":
    main()
