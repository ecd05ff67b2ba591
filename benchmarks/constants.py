"""What halving and doubling each constant of the detector does.

    python benchmarks/constants.py FOLDER [FOLDER ...]

The folders hold labelled files in TSB-AD's format; of each data set the first few are used. All constants are in
`src/tocsin/constants.py`. The light preset runs: the same detector without the network, in about 60% of the time.
Beside the quality of the ranking on those files stands what happens to the promise on families of signals without
anomalies: the family that is farthest from it at one incident in 300 observations, the incidents by estimated tails
over the promised number at one in 3,000, and the same at one in 300 for signals with a reference, over all families.
Then the faults found in simulated signals: on average, and the kind of fault and signal that loses most against the
usual constants. Halving and doubling is coarse, and small differences are chance: a constant that nothing depends on
should go.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent))

from faults import AFTER, ALARM_RATE, Watch, found_in

from tocsin.constants import Constants, changed
from tocsin.detection import Fleet
from tocsin_bench.families import FAMILIES
from tocsin_bench.faults import BASES, FAULTS
from tocsin_bench.files import find_files
from tocsin_bench.grid import Combination, grid_plan
from tocsin_bench.results import BenchmarkResults
from tocsin_bench.runner import run_benchmark
from tocsin_bench.selection import compare

LIGHT = {"preset": "light"}
RATE, RARE = 1 / 300, 1 / 3000
LENGTH, REFERENCE, BEFORE = 4000, 1000, 3000
# Every third family: all kinds of them, in a third of the time.
SOME = list(FAMILIES)[::3]
# Longer seasons need a longer past.
KINDS = [kind for kind, base in BASES.items() if (base.period or 0) <= BEFORE / 6]


def variants(names):
    """`(constant, how it is changed, new value)`; the first leaves everything as it is."""
    found = [("", "", None)]
    for name, usual in Constants()._asdict().items():
        if name in names:
            for change, factor in (("halved", 0.5), ("doubled", 2.0)):
                value = usual * factor
                found.append((name, change, max(round(value), 1) if isinstance(usual, int) else value))
    return found


def as_changes(variant):
    """The constants of a variant that are not the usual ones."""
    name, _, value = variant
    return {name: value} if name else {}


def measure_ranking(folders, limit, tried, jobs, progress):
    """VUS-PR and the events found of each variant: means over data sets."""
    grid = [Combination({**LIGHT, **as_changes(variant)}) for variant in tried]
    with tempfile.TemporaryDirectory() as folder, BenchmarkResults(Path(folder)) as results:
        run_benchmark(find_files(folders, limit=limit), grid_plan(grid), results, jobs=jobs, progress=progress)
        comparison = compare(results.runs(), [one.label for one in grid])
    return [comparison.overall(one.label) for one in grid]


def ratio(verdicts, rate, counted):
    """Incidents and the promised number among the observations that count."""
    return np.array([(counted & verdicts.opened).sum(), rate * counted.sum()])


def measure_promise(family, signals, changes):
    """Incidents and the promised number of one family: by its own past, as estimated, and with a reference."""
    values = FAMILIES[family](np.random.default_rng(0), signals, LENGTH)
    with changed(**changes):
        usual, rare = (Fleet(signals, alarm_rate=rate, **LIGHT).run_arrays(values) for rate in (RATE, RARE))
        compared = Fleet(signals, alarm_rate=RATE, **LIGHT)
        for row in range(signals):
            compared.learn_reference(values[:REFERENCE, row], row=row)
        later = compared.run_arrays(values[REFERENCE:])
    return {
        "own": ratio(usual, RATE, usual.warm & ~usual.estimated),
        "estimated": ratio(rare, RARE, rare.warm & rare.estimated),
        "reference": ratio(later, RATE, later.warm),
    }


def measure_faults(kind, signals, changes):
    """`{fault: share found}` in one kind of signal."""
    base, rng = BASES[kind], np.random.default_rng(list(BASES).index(kind))
    faults = [fault for fault in FAULTS.values() if fault.fits(base)]
    longest = max(fault.lasts(base) for fault in faults)
    clean = base(rng, signals, BEFORE + longest + AFTER)
    found = {}
    with changed(**changes):
        watch = Watch(Fleet(signals, alarm_rate=ALARM_RATE, **LIGHT), clean.values[:BEFORE])
        for fault in faults:
            length = fault.lasts(base)
            alarm = watch.alarms(fault(clean, BEFORE)[BEFORE : BEFORE + length + AFTER])
            found[kind, fault.name] = found_in(alarm, length)[0].mean()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, help="of labelled files in TSB-AD's format")
    parser.add_argument("--limit", type=int, default=4, help="files of each data set")
    parser.add_argument("--signals", type=int, default=8, help="simulated signals of each kind")
    parser.add_argument("--constant", action="append", choices=Constants._fields, help="only this one; repeatable")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    given = parser.parse_args()
    started = time.perf_counter()
    tried = variants(given.constant or Constants._fields)
    spawn = multiprocessing.get_context("spawn")
    with (
        Progress(console=Console(stderr=True), transient=True) as bar,
        ProcessPoolExecutor(given.jobs, mp_context=spawn) as pool,
    ):
        of_variant = [
            (
                [pool.submit(measure_promise, family, given.signals, as_changes(one)) for family in SOME],
                [pool.submit(measure_faults, kind, given.signals, as_changes(one)) for kind in KINDS],
            )
            for one in tried
        ]
        promises, faults = [], []
        for of_families, of_bases in bar.track(of_variant, description="promise and faults"):
            promises.append([future.result() for future in of_families])
            faults.append({cell: share for future in of_bases for cell, share in future.result().items()})
        files = len(find_files(given.folders, limit=given.limit))
        task = bar.add_task("ranking", total=files)
        rankings = measure_ranking(given.folders, given.limit, tried, given.jobs, lambda _: bar.advance(task))
    table = Table(box=SIMPLE_HEAD, title="the constants, halved and doubled")
    for heading in ("constant", "", "value"):
        table.add_column(heading)
    for heading in ("VUS-PR", "events", "worst family", "estimated", "reference", "faults found", "worst loss"):
        table.add_column(heading, justify="right")
    table.add_column("of")
    worst, usual = {}, rankings[0]
    for (name, change, value), ranking, promise, found in zip(tried, rankings, promises, faults, strict=True):
        farthest = max((one["own"][0] / one["own"][1] for one in promise), key=lambda it: abs(it - 1))
        sums = [sum(one[part] for one in promise) for part in ("estimated", "reference")]
        of_all = [counted / promised if promised else np.nan for counted, promised in sums]
        cell = min(found, key=lambda it: found[it] - faults[0][it])
        loss = found[cell] - faults[0][cell]
        worst[name, change] = loss
        table.add_row(name or "as they are", change, "" if value is None else f"{value:g}", f"{ranking.vus_pr:.3f}",
                      f"{ranking.events:.3f}", f"{farthest:.2f}", *(f"{one:.2f}" for one in of_all),
                      f"{np.mean(list(found.values())):.3f}", f"{loss:+.2f}" if name else "",
                      ", ".join(cell) if loss < 0 else "")  # fmt: skip
        if change != "halved":
            table.add_section()
    Console(width=150, highlight=False).print(table)
    print(f"{given.signals} signals of each kind, {files} files, {time.perf_counter() - started:.0f} s")
    best = max(ranking.by("both") for ranking in rankings) - usual.by("both")
    numbers = {"vus_pr": usual.vus_pr, "events": usual.events, "best_gain": best, "worst_loss": min(worst.values())}
    print(f"constants={len(Constants._fields)} " + " ".join(f"{name}={value:.3f}" for name, value in numbers.items()))


if __name__ == "__main__":
    main()
