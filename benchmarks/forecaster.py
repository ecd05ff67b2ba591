"""Speed and size of the network that comes with the package, on one core, beside other forecasters.

    python benchmarks/forecaster.py

A session follows 64 signals, or one alone, one observation of each at a time, 15 steps ahead, with contexts that are
full. After 64 to 128 observations of a signal the network reads its whole context again; so what is timed are many of
these cycles. The networks of other libraries have the published sizes and random weights, which take the same time as
trained ones; they are called through Tocsin's adapters, and read their whole context for every forecast.

All take turns in several rounds, of which the best counts: on a shared machine the best is what the code can do.
"""

import os

# Before numpy, torch and the hub's library come in.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = os.environ["NUMBA_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"

import argparse
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from tocsin.forecasting import EmbeddedForecaster, available_forecasters, make_forecaster
from tocsin.forecasting.embedded.weights import SHIPPED

SIGNALS, HORIZON, CONTEXT = 64, 15, 512
CONTEXTS = (52, CONTEXT, 1024)
EMBEDDED = "embedded"
LIGHT = ("autoregression", "seasonal-naive", "last-value")
# The network reads a context again after so many observations, at most: of many signals this is enough to time, of one
# alone many times as many.
CYCLE = 128
ALONE = 10 * CYCLE
# Contexts are full when the clock starts.
WARM_UP = 11 * CYCLE
# What takes little time is done so often in each round.
REPEATS = 16

console = Console(width=120, highlight=False)
progress = Console(stderr=True)


class Timing(NamedTuple):
    """Seconds of every call, `[round, call]`."""

    seconds: np.ndarray

    @property
    def mean(self):
        """Of the calls of the best round."""
        return self.seconds.mean(axis=1).min()

    @property
    def slowest(self):
        """The longest call of the round in which it was shortest."""
        return self.seconds.max(axis=1).min()


def calls(work, inputs):
    """A round: gives every input to the work; returns the seconds that each took."""

    def one_round():
        seconds = np.empty(len(inputs))
        for number, given in enumerate(inputs):
            started = time.perf_counter()
            work(given)
            seconds[number] = time.perf_counter() - started
        return seconds

    return one_round


def take_turns(works, rounds):
    """The timing of each, round by round; a first round that compiles and fills the caches does not count."""
    seconds = {name: [] for name in works}
    for _ in track(range(rounds + 1), "rounds", console=progress, transient=True):
        for name, one_round in works.items():
            seconds[name].append(one_round())
    return {name: Timing(np.array(of_rounds[1:])) for name, of_rounds in seconds.items()}


def signals(count, length):
    """Waves with noise."""
    rng = np.random.default_rng(0)
    phase = 2 * np.pi * (np.arange(length)[:, np.newaxis] / 96 + rng.random(count))
    return 3 * np.sin(phase) + rng.standard_normal((length, count))


def opened(forecaster, values):
    """A session that has followed these values. Nobody looks at its forecasts so far, which need not be made."""
    session = forecaster.open(values.shape[1], HORIZON)
    session.run(values, wanted=np.zeros(values.shape, dtype=np.bool_))
    return session


def pushes(forecaster, count, steps=CYCLE):
    """A round of so many observations of each of `count` signals, one at a time."""
    values = signals(count, WARM_UP + steps)
    return calls(opened(forecaster, values[:WARM_UP]).push, values[WARM_UP:])


def history(forecaster):
    """A round of one signal's next observations, all at once."""
    values = signals(1, 2 * WARM_UP)
    return calls(opened(forecaster, values[:WARM_UP]).run, [values[WARM_UP:]])


def origins(forecaster):
    """A round of forecasts from every origin of a history that has a full context before it."""
    values = signals(1, CONTEXT + WARM_UP)[:, 0]
    ends = np.arange(CONTEXT, values.size)
    return calls(lambda history: forecaster.forecast_origins(history, ends, HORIZON), [values])


def forecasts(forecaster, together, length, repeats=1):
    """A round of forecasts from contexts of one length."""
    batches = np.random.default_rng(1).standard_normal((repeats, together, length))
    return calls(lambda batch: forecaster.forecast(batch, HORIZON), batches)


class Peer(NamedTuple):
    """A network of another library: what its figures begin with, its name and adapter, what saves it, and its sizes."""

    figure: str
    name: str
    adapter: str
    save: Callable[..., int]
    sizes: dict[str, Any]


def save_bolt(folder, **sizes):
    """Save a Chronos-Bolt of random weights; returns how many they are."""
    from chronos.chronos_bolt import ChronosBoltModelForForecasting
    from transformers import T5Config

    config = T5Config(d_kv=64, decoder_start_token_id=0, pad_token_id=0, **sizes)
    config.chronos_pipeline_class = "ChronosBoltPipeline"
    config.chronos_config = {
        "context_length": 2048,
        "prediction_length": 64,
        "input_patch_size": 16,
        "input_patch_stride": 16,
        "quantiles": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        "use_reg_token": True,
    }
    network = ChronosBoltModelForForecasting(config)
    network.save_pretrained(folder)
    return network.num_parameters()


def save_ttm(folder, **sizes):
    """Save a Tiny Time Mixer of random weights; returns how many they are."""
    from tsfm_public.models.tinytimemixer import TinyTimeMixerConfig, TinyTimeMixerForPrediction

    network = TinyTimeMixerForPrediction(TinyTimeMixerConfig(**sizes))
    network.save_pretrained(folder)
    return network.num_parameters()


PEERS = (
    Peer("chronos_tiny", "Chronos-Bolt tiny", "chronos", save_bolt,
         {"d_model": 256, "d_ff": 1024, "num_layers": 4, "num_decoder_layers": 4, "num_heads": 4}),
    Peer("chronos_small", "Chronos-Bolt small", "chronos", save_bolt,
         {"d_model": 512, "d_ff": 2048, "num_layers": 6, "num_decoder_layers": 6, "num_heads": 8}),
    Peer("ttm", "TTM-R2 (512 to 96)", "ttm", save_ttm,
         {"context_length": 512, "prediction_length": 96, "patch_length": 64, "patch_stride": 64, "d_model": 192,
          "num_layers": 2, "adaptive_patching_levels": 3, "decoder_d_model": 128, "decoder_num_layers": 2}),
)  # fmt: skip


def make_peer(peer):
    """The forecaster, and how many parameters it has."""
    import torch
    from transformers.utils import logging

    torch.set_num_threads(1)
    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        parameters = peer.save(folder, **peer.sizes)
        options = {"model": folder, "device": "cpu", "context_length": CONTEXT}
        return make_forecaster(peer.adapter, options), parameters


def count_parameters():
    with np.load(SHIPPED) as arrays:
        return sum(array.size for array in arrays.values() if array.dtype == np.float16)


def fresh_process(runs):
    """Seconds to import, to load weights and compiled loops, and for the first forecast, each the best of some runs."""
    script = (
        "import time; times = [time.perf_counter()]\n"
        "from tocsin import EmbeddedForecaster; times.append(time.perf_counter())\n"
        f"forecaster = EmbeddedForecaster(); forecaster.open(1, {HORIZON}); times.append(time.perf_counter())\n"
        f"forecaster.forecast([list(range({CONTEXT}))], {HORIZON}); times.append(time.perf_counter())\n"
        "print(*(after - before for before, after in zip(times, times[1:])))"
    )
    outputs = [
        subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
        for _ in track(range(runs), "fresh processes", console=progress, transient=True)
    ]
    return np.array([output.split() for output in outputs], dtype=float).min(axis=0)


def sizes_of(forecaster):
    """Bytes of state and of memory that a session takes for each of its signals."""
    values = signals(SIGNALS, WARM_UP)
    tracemalloc.start()
    session = opened(forecaster, values)
    memory = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return sum(array.nbytes for array in session.state().values()) / SIGNALS, memory / SIGNALS


def digits(number):
    return f"{number:.3g}" if number < 100 else f"{number:,.0f}"


def in_ms(seconds):
    return digits(seconds * 1e3)


def own_table(timings, started, parameters):
    table = Table(box=SIMPLE_HEAD, title=f"{EMBEDDED}: a forecast of {HORIZON} steps")
    table.add_column("what")
    table.add_column("measured", justify="right")
    for length in CONTEXTS:
        seconds = timings[EMBEDDED, f"batch {length}"].mean / SIGNALS
        table.add_row(f"from a context of {length:,}, {SIGNALS} of them together", f"{in_ms(seconds)} ms")
    table.add_row(f"from a context of {CONTEXT} alone", f"{in_ms(timings[EMBEDDED, 'alone'].mean)} ms")
    seconds = timings[EMBEDDED, "origins"].mean / WARM_UP
    table.add_row(f"from each of {WARM_UP:,} origins of a history, contexts of {CONTEXT}", f"{in_ms(seconds)} ms")
    table.add_section()
    for what, seconds in zip(("import", "weights and compiled loops", "first forecast"), started, strict=True):
        table.add_row(f"{what}, in a fresh process, compiled before", f"{seconds:.2f} s")
    table.add_row("parameters", f"{parameters:,}")
    table.add_row("file of weights", f"{SHIPPED.stat().st_size / 1e6:.2f} MB")
    return table


def session_table(timings, forecasters):
    table = Table(box=SIMPLE_HEAD, title="following signals: µs for an observation of one, and kB for one")
    table.add_column("forecaster")
    for heading in (
        f"{SIGNALS} together", f"slowest push of all {SIGNALS}", "one alone", "its slowest push", "its history at once",
        "state", "memory",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    for name, forecaster in forecasters.items():
        together, alone = timings[name, "session 64"], timings[name, "session 1"]
        at_once = timings[name, "history"].mean / WARM_UP
        times = (together.mean / SIGNALS, together.slowest, alone.mean, alone.slowest, at_once)
        sizes = sizes_of(forecaster)
        table.add_row(name, *(digits(seconds * 1e6) for seconds in times), *(digits(size / 1e3) for size in sizes))
    return table


def costs(timings, name):
    """Seconds for a forecast, in the ways that every network is measured in."""
    return {
        "batch": timings[name, f"batch {CONTEXT}"].mean / SIGNALS,
        "alone": timings[name, "alone"].mean,
        "session": timings[name, "session 64"].mean / SIGNALS,
    }


def peer_table(timings, parameters):
    title = f"networks, contexts of {CONTEXT}: ms for a forecast (and how many times ours)"
    table = Table(box=SIMPLE_HEAD, title=title)
    table.add_column("network")
    for heading in ("parameters", f"{SIGNALS} together", "one alone", f"in a session of {SIGNALS}"):
        table.add_column(heading, justify="right")
    ours = costs(timings, EMBEDDED)
    table.add_row(EMBEDDED, f"{parameters[EMBEDDED]:,}", *map(in_ms, ours.values()))
    for peer in PEERS:
        if peer.name in parameters:
            theirs = costs(timings, peer.name)
            cells = [f"{in_ms(theirs[way])} ({theirs[way] / ours[way]:.1f})" for way in ours]
            table.add_row(peer.name, f"{parameters[peer.name]:,}", *cells)
        else:
            extra = available_forecasters()[peer.adapter].extra
            table.add_row(peer.name, escape(f"not installed: pip install '{extra}'"))
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    network = EmbeddedForecaster()
    forecasters = {EMBEDDED: network, **{name: make_forecaster(name) for name in LIGHT}}
    parameters = {EMBEDDED: count_parameters()}
    works = {(EMBEDDED, f"batch {length}"): forecasts(network, SIGNALS, length) for length in CONTEXTS}
    works[EMBEDDED, "alone"] = forecasts(network, 1, CONTEXT, REPEATS)
    works[EMBEDDED, "origins"] = origins(EmbeddedForecaster(context_length=CONTEXT))
    for name, forecaster in forecasters.items():
        works[name, "session 64"] = pushes(forecaster, SIGNALS)
        works[name, "session 1"] = pushes(forecaster, 1, ALONE)
        works[name, "history"] = history(forecaster)
    for peer in PEERS:
        if not available_forecasters()[peer.adapter].missing:
            forecaster, parameters[peer.name] = make_peer(peer)
            works[peer.name, f"batch {CONTEXT}"] = forecasts(forecaster, SIGNALS, CONTEXT)
            works[peer.name, "alone"] = forecasts(forecaster, 1, CONTEXT, REPEATS)
            # Each of their pushes costs the same, so that one stands for a cycle.
            works[peer.name, "session 64"] = pushes(forecaster, SIGNALS, steps=1)
    timings = take_turns(works, given.rounds)
    console.print(own_table(timings, fresh_process(given.rounds), parameters[EMBEDDED]))
    console.print(session_table(timings, forecasters))
    console.print(peer_table(timings, parameters))
    ours = costs(timings, EMBEDDED)
    alone = timings[EMBEDDED, "session 1"].mean
    figures = [f"session64_ms={ours['session'] * 1e3:.4f}", f"session1_ms={alone * 1e3:.4f}"]
    each = timings[EMBEDDED, "origins"].mean / WARM_UP
    figures += [f"batch512_ms={ours['batch'] * 1e3:.4f}", f"origins512_ms={each * 1e3:.4f}"]
    for peer in PEERS:
        if peer.name in parameters:
            theirs = costs(timings, peer.name)
            figures += [f"{peer.figure}_{way}_ratio={theirs[way] / ours[way]:.1f}" for way in ours]
            figures.append(f"{peer.figure}_origins_ratio={theirs['batch'] / each:.1f}")
    print(*figures)


if __name__ == "__main__":
    main()
