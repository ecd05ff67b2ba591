"""Speed and size of W1ACAS: `python benchmarks/scorer.py`.

One core unless a line says otherwise. 64 signals of 15 streams take turns, one observation each, so that no signal's
state is still in the core's own caches when its turn comes again. The plain numpy oracle of the tests continues the
same signals from the same state, under the same conditions, in rounds that alternate with the scorer's. Each time is
the best of its rounds, which is the one least disturbed by others on the machine.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy comes in

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests import oracles

from tocsin.conformal import W1ACAS

Floats = NDArray[np.float64]

SIGNALS, STREAMS, WINDOW, BATCH = 64, 15, 2000, 10
ROUNDS = 25

console = Console(width=110, highlight=False)
progress = Console(stderr=True)


def timed(work: Callable[..., Any], *arguments: object) -> tuple[float, Any]:
    """Seconds that the work took, and its result."""
    start = time.perf_counter()
    result = work(*arguments)
    return time.perf_counter() - start, result


def main() -> None:
    rng = np.random.default_rng(0)
    turns = against_oracle(rng)
    import_s, first_call_s = fresh_process()
    table = Table(title=f"{SIGNALS} signals x {STREAMS} streams, window {WINDOW}, batch {BATCH}, learning on")
    table.add_column("what")
    table.add_column("measured", justify="right")
    table.add_row("one observation of one signal, a scorer for each signal", f"{turns.separate_us:.1f} µs")
    table.add_row("the same, one scorer for all signals", f"{turns.together_us:.1f} µs")
    table.add_row("the same, plain numpy oracle", f"{turns.oracle_us:.0f} µs")
    table.add_row("oracle / a scorer for each signal", f"{turns.oracle_us / turns.separate_us:.1f}")
    table.add_row("oracle / one scorer for all signals", f"{turns.oracle_us / turns.together_us:.1f}")
    table.add_row("largest difference of scorer and oracle in p", f"{turns.difference:.1e}")
    table.add_row("memory of one stream", f"{turns.bytes_per_stream / 1000:.1f} kB")
    table.add_row("import tocsin, fresh process", f"{import_s:.3f} s")
    table.add_row("first scorer and first update, fresh process, warm cache", f"{first_call_s:.3f} s")
    console.print(table)
    console.print(growth_with_window(rng))
    console.print(growth_with_streams(rng))
    print(
        f"observation_us={turns.separate_us:.1f} oracle_ratio={turns.oracle_us / turns.separate_us:.1f} "
        f"bytes_per_stream={turns.bytes_per_stream:.0f} import_s={import_s:.3f} first_call_s={first_call_s:.3f}"
    )


@dataclass
class Turns:
    """µs per observation of one signal, for each way of scoring it."""

    separate_us: float
    together_us: float
    oracle_us: float
    difference: float
    bytes_per_stream: float


def against_oracle(rng: np.random.Generator) -> Turns:
    separate = [W1ACAS(STREAMS, window=WINDOW, batch=BATCH) for _ in range(SIGNALS)]
    together = W1ACAS(SIGNALS * STREAMS, window=WINDOW, batch=BATCH)
    history = np.abs(rng.normal(size=(together.critical_size + WINDOW + 20 * BATCH, STREAMS)))
    for scorer in separate:
        scorer.run(history)
    together.run(np.tile(history, SIGNALS))
    oracle = [[as_oracle(scorer, k) for k in range(STREAMS)] for scorer in separate]
    times: dict[str, list[float]] = {"separate": [], "together": [], "oracle": []}
    difference = 0.0
    for _ in track(range(ROUNDS), "scorers and oracle in turns", console=progress, transient=True):
        # The first batch is not timed: the others have just pushed this one's state out of the last cache too.
        before, after = np.abs(rng.normal(size=(2, BATCH, STREAMS)))
        take_turns(separate, before)
        seconds, p = timed(take_turns, separate, after)
        times["separate"].append(seconds)
        take_turns([together], np.tile(before, SIGNALS))
        seconds, _ = timed(take_turns, [together], np.tile(after, SIGNALS))
        times["together"].append(seconds)
        oracles_take_turns(oracle, before)
        seconds, oracle_p = timed(oracles_take_turns, oracle, after)
        times["oracle"].append(seconds)
        difference = max(difference, float(np.abs(np.array(p) - np.array(oracle_p)).max()))
    best = {name: min(rounds) / (BATCH * SIGNALS) * 1e6 for name, rounds in times.items()}
    return Turns(best["separate"], best["together"], best["oracle"], difference, separate[0].nbytes / STREAMS)


def take_turns(scorers: list[W1ACAS], observations: Floats) -> list[Floats]:
    return [scorer.update(row) for row in observations for scorer in scorers]


def oracles_take_turns(signals: list[list[oracles.W1ACAS]], observations: Floats) -> list[list[float]]:
    return [
        [oracle.update(score) for oracle, score in zip(signal, row, strict=True)]
        for row in observations
        for signal in signals
    ]


def as_oracle(scorer: W1ACAS, stream: int) -> oracles.W1ACAS:
    """The oracle that continues one stream of the scorer; valid where a batch has just ended."""
    state = scorer.state()
    oracle = oracles.W1ACAS(
        critical=scorer.critical_size,
        window=scorer.window,
        batch=scorer.batch,
        stride=scorer.stride,
        learning_rate=scorer.learning_rate,
        optimizer=scorer.optimizer,
        prior=scorer.prior,
    )
    oracle.recorded = int(state["learned"][stream]) - scorer.critical_size
    oracle.steps = oracle.recorded // scorer.batch
    oracle.scores = state["scores"][stream, : scorer.window].astype(np.float64)
    oracle.weights = state["weights"][stream].astype(np.float64)
    oracle.gradient_mean = state["moments"][stream, 0].astype(np.float64)
    oracle.gradient_square = state["moments"][stream, 1].astype(np.float64)
    pending = oracle.recorded % scorer.batch
    if pending:
        raise ValueError(f"scorer must be at the end of a batch, got {pending} p-values waiting")
    return oracle


def fresh_process() -> tuple[float, float]:
    """Seconds for `import tocsin`, and for the first scorer with its first update, each in a process of its own."""
    script = (
        "import time; start = time.perf_counter(); import tocsin; imported = time.perf_counter()\n"
        "tocsin.conformal.W1ACAS(15).update([0.0] * 15); print(imported - start, time.perf_counter() - imported)"
    )
    runs = []
    for _ in track(range(7), "fresh processes", console=progress, transient=True):
        output = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
        runs.append([float(number) for number in output.split()])
    imports, first_calls = zip(*runs, strict=True)
    return statistics.median(imports), statistics.median(first_calls)


def update_us(scorer: W1ACAS, rng: np.random.Generator, updates: int) -> float:
    """Best µs per update, over ten runs, of a scorer whose window is full."""
    scorer.run(np.abs(rng.normal(size=(scorer.window + BATCH, scorer.streams))))
    rows = np.abs(rng.normal(size=(updates, scorer.streams)))
    return min(timed(take_turns, [scorer], rows)[0] for _ in range(10)) / updates * 1e6


def growth_with_window(rng: np.random.Generator) -> Table:
    table = Table(title=f"Growth with the window ({STREAMS} streams; one signal alone, so from cache where it fits)")
    for heading in ("window", "µs per observation", "ns per stream and 1,000 lags"):
        table.add_column(heading, justify="right")
    for window in track((500, 1000, 2000, 5000, 10_000, 20_000), "windows", console=progress, transient=True):
        us = update_us(W1ACAS(STREAMS, window=window), rng, 10 * BATCH)
        table.add_row(f"{window:,}", f"{us:.1f}", f"{us / STREAMS / window * 1e6:.0f}")
    return table


def growth_with_streams(rng: np.random.Generator) -> Table:
    cores = os.cpu_count() or 1
    table = Table(title=f"Growth with the number of streams (window {WINDOW})")
    for heading in ("streams", "µs per update, 1 thread", "µs per stream", f"µs per update, {cores} threads"):
        table.add_column(heading, justify="right")
    for streams in track((1, 15, 50, 150, 500, 1500), "streams", console=progress, transient=True):
        updates = 10 * BATCH if streams <= 150 else 2 * BATCH
        alone = update_us(W1ACAS(streams, window=WINDOW), rng, updates)
        shared = update_us(W1ACAS(streams, window=WINDOW, threads=cores), rng, updates)
        table.add_row(f"{streams:,}", f"{alone:.1f}", f"{alone / streams:.2f}", f"{shared:.1f}")
    return table


if __name__ == "__main__":
    main()
