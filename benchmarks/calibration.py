"""False incidents of the default detector on signals without anomalies, of many families.

    python benchmarks/calibration.py

Every family is watched at several alarm rates, which are rates of incidents, with the same forecasts. The numbers are
incidents over the promised number, so that 1 is the promise, once a signal's own past tells the alarm rate; behind ±,
the band that holds the mean over such signals with 95% confidence, from the spread over the signals. Apart from them,
the same of what is estimated before, over all rates together, and the share of observations with p < 0.01 over 0.01: p
is calibrated observation by observation, whatever becomes an incident. The last row has the signals of all families,
as a fleet.
"""

import argparse
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.bands import margin

from tocsin.detection import Fleet
from tocsin_bench.families import FAMILIES

RATES = {"1/100": 1 / 100, "1/300": 1 / 300, "1/1000": 1 / 1000, "1/3000": 1 / 3000}
P_BELOW = 0.01
WEEKS = ("weekly-hourly", "weekly-5min")


def measure(family, signals, length, seed):
    """For each rate, of each signal: incidents and what was promised, by its own past and as estimated, and low p."""
    values = FAMILIES[family](np.random.default_rng(seed), signals, length)
    found, kept_forecasts = {}, None
    for name, rate in RATES.items():
        pieces = []
        fleet = Fleet(signals, alarm_rate=rate)
        verdicts = fleet.run_arrays(
            values, kept_forecasts=kept_forecasts, on_forecast=pieces.append if kept_forecasts is None else None
        )
        kept_forecasts = np.concatenate(pieces) if kept_forecasts is None else kept_forecasts
        judged = verdicts.warm & ~np.isnan(verdicts.p)
        own, early = judged & ~verdicts.estimated, judged & verdicts.estimated
        if not own.any(axis=0).all():
            sys.exit(
                f"{length} observations are too few for {name}: some signals never had a past of their own to tell it"
            )
        found[name] = {
            "own": ((own & verdicts.opened).sum(axis=0), rate * own.sum(axis=0)),
            "estimated": ((early & verdicts.opened).sum(axis=0), rate * early.sum(axis=0)),
            "low": ((own & (verdicts.p < P_BELOW)).sum(axis=0), P_BELOW * own.sum(axis=0)),
        }
    return found


def run(given):
    """`{family: what was measured}`, on several cores."""
    families = given.family or list(FAMILIES)
    spawn = multiprocessing.get_context("spawn")
    with (
        Progress(console=Console(stderr=True), transient=True) as bar,
        ProcessPoolExecutor(given.jobs, mp_context=spawn) as pool,
    ):
        futures = [pool.submit(measure, family, given.signals, given.length, given.seed) for family in families]
        done = bar.track(futures, description="families")
        return dict(zip(families, (future.result() for future in done), strict=True))


def ratio(cells):
    """Incidents over the promised number, of all signals together."""
    counted, promised = (sum(cell[part].sum() for cell in cells) for part in (0, 1))
    return counted / promised if promised else float("nan")


def show(found, screen):
    """A row for each family."""
    table = Table(box=SIMPLE_HEAD, title="false incidents over the promise")
    table.add_column("family")
    for heading in (*RATES, "estimated", f"p < {P_BELOW:g}"):
        table.add_column(heading, justify="right")
    for family, by_rate in found.items():
        row = []
        for cells in by_rate.values():
            counted, promised = cells["own"]
            row.append(f"{ratio([cells['own']]):.2f} ± {margin(counted / promised, 0.05):.2f}")
        estimated = ratio([cells["estimated"] for cells in by_rate.values()])
        table.add_row(family, *row, f"{estimated:.2f}", f"{ratio([by_rate['1/100']['low']]):.2f}")
    table.add_section()
    together = [f"{ratio([by_rate[name]['own'] for by_rate in found.values()]):.2f}" for name in RATES]
    estimated = ratio([cells["estimated"] for by_rate in found.values() for cells in by_rate.values()])
    low = ratio([by_rate["1/100"]["low"] for by_rate in found.values()])
    table.add_row("all of them", *together, f"{estimated:.2f}", f"{low:.2f}")
    screen.print(table)


def worst(found, name, families=FAMILIES):
    """How far the family that is farthest from the promise is from it; NaN if none of these families was watched."""
    far = (abs(ratio([by_rate[name]["own"]]) - 1) for family, by_rate in found.items() if family in families)
    return max(far, default=float("nan"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--signals", type=int, default=12, help="of each family")
    parser.add_argument("--length", type=int, default=12_000, help="observations of each")
    parser.add_argument("--family", action="append", choices=list(FAMILIES), help="only this one; repeatable")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    given = parser.parse_args()
    started = time.perf_counter()
    found = run(given)
    screen = Console(width=130, highlight=False)
    show(found, screen)
    screen.print(f"{given.signals} signals of {given.length} observations, {time.perf_counter() - started:.0f} s")
    fleet = max(abs(ratio([by_rate[name]["own"] for by_rate in found.values()]) - 1) for name in RATES)
    print(
        f"worst_01={worst(found, '1/100'):.3f} worst_001={worst(found, '1/1000'):.3f} "
        f"worst_incidents={worst(found, '1/300'):.3f} worst_rare={worst(found, '1/3000'):.3f} worst_fleet={fleet:.3f} "
        f"weeks_300={worst(found, '1/300', WEEKS):.3f} weeks_1000={worst(found, '1/1000', WEEKS):.3f}"
    )


if __name__ == "__main__":
    main()
