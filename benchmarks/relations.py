"""Faults in one of several features that depend on each other, beside charts for several features.

    python benchmarks/relations.py
    python benchmarks/relations.py --features 200

Signals have 2, 10 or 50 features, or as many as you say: common factors (autoregressive, .9) explain nine tenths of the
variance of each, and the rest is noise. They are watched with an alarm rate of 0.002 by `preset="light"`, because the
network looks at one feature at a time and takes long. Then comes one fault: a feature follows other factors than the
rest (broken relation), follows 5 observations late, grows by 1.3, shifts by 2 sd or is stuck; or all features shift by
.5 sd. A fault is found if there is an alarm while it lasts, or in the 15 observations after, where the same signal
without it is in no incident.

Rivals learn from the same clean start: T-squared and Q of principal components that explain 90%, and the largest EWMA
of all features (which is Bonferroni's rule). On the clean part of all signals they have as many false incidents as
Tocsin had. "alone" is the detector of the faulty feature without the others, at the same alarm rate.

Last, plants without faults: four sensors that depend on each other, and four switches with rare short pulses, one of
which moves a sensor. How many false incidents there are, beside those promised.
"""

import argparse
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tocsin.detection import Detector
from tocsin.detection.settings.detector_settings import VIEWS

RATE = 0.002
START, CLEAN, LASTS, AFTER, GAP = 1500, 3000, 150, 15, 10
# The number of signals with so many features, and how many of the features are faulty in turn.
SIGNALS = {2: (12, 2), 10: (6, 2), 50: (3, 2), 200: (2, 2)}
COMMON, MEMORY = 0.9, 0.9
SMOOTHING, EXPLAINED = 0.2, 0.9
PIECE = 33
COMMON_FAULT = "all shift by .5 sd"
SHIFT = "shift by 2 sd"
# Plants: so many for each mean time between the pulses of the first switch; the others have twice to four times that.
PLANTS, PLANT_START, PLANT_LENGTH, BETWEEN_PULSES, LONGEST_PULSE = 6, 3000, 9000, (100, 400, 1500), 5
FAULTS = ("broken relation", "5 late", "gain 1.3", SHIFT, "stuck", COMMON_FAULT)


def make_signal(features, seed):
    """Values `[T, F]`, and what each would be if it followed other factors, or the same ones 5 observations late."""
    rng = np.random.default_rng([features, seed])
    length, lag = CLEAN + LASTS + AFTER, 5
    factors = 1 if features == 2 else 2
    loadings = rng.uniform(0.5, 1, size=(factors, features)) * rng.choice([-1, 1], size=(factors, features))
    loadings *= np.sqrt(COMMON / (loadings**2).sum(axis=0))
    noise = np.sqrt(1 - COMMON) * rng.normal(size=(length, features))

    def common():
        steps = rng.normal(size=(length + lag + 100, factors)) * np.sqrt(1 - MEMORY**2)
        for t in range(1, len(steps)):
            steps[t] += MEMORY * steps[t - 1]
        return steps[100:] @ loadings

    own, other = common(), common()
    return own[lag:] + noise, other[lag:] + noise, own[:-lag] + noise


def with_fault(fault, feature, signal):
    """The observations from the fault on."""
    values, elsewhere, late = (one[CLEAN:].copy() for one in signal)
    during = slice(0, LASTS)
    changed = {
        "broken relation": elsewhere[:, feature],
        "5 late": late[:, feature],
        "gain 1.3": 1.3 * values[:, feature],
        SHIFT: values[:, feature] + 2,
        "stuck": np.full(len(values), signal[0][CLEAN - 1, feature]),
        COMMON_FAULT: values[:, feature] + 0.5,
    }[fault]
    if fault == COMMON_FAULT:
        values[during] += 0.5
    values[during, feature] = changed[during]
    return values


def new_incident(state, values, usual):
    """The first incident that the signal without the fault does not have; None if there is none.

    It may have begun before the fault, if there it ended by then.
    """
    detector = Detector.from_bytes(state)
    for first in range(0, len(values), PIECE):
        part = detector.run(values[first : first + PIECE])
        new = part.alarm & ~usual[first : first + PIECE]
        if new.any():
            at = CLEAN + first + int(np.argmax(new))
            return next(one for one in detector.incidents if one.first <= at <= one.last)
    return None


def watch(task):
    """What Tocsin finds in one signal: faults with the features that it names, false incidents, and their cost."""
    features, seed, faulty = task
    signal = make_signal(features, seed)
    detector = Detector(features, preset="light", alarm_rate=RATE)
    detector.run(signal[0][:START])
    before = len(detector.incidents)
    begun = time.process_time()
    detector.run(signal[0][START:CLEAN])
    cost = time.process_time() - begun
    false, state = len(detector.incidents) - before, detector.to_bytes()
    usual = detector.run(signal[0][CLEAN:]).open
    rng = np.random.default_rng([features, seed, 1])
    found = {}
    for feature in rng.permutation(features)[:faulty]:
        alone = Detector(1, preset="light", alarm_rate=RATE)
        alone.run(signal[0][:CLEAN, [feature]])
        kept = alone.to_bytes()
        own = alone.run(signal[0][CLEAN:, [feature]]).open
        for fault in FAULTS:
            if fault == COMMON_FAULT and (fault, -1) in found:
                continue
            values = with_fault(fault, feature, signal)
            one = new_incident(state, values, usual)
            ranked = [] if one is None else [int(name.split()[-1]) - 1 for name in one.features]
            single = new_incident(kept, values[:, [feature]], own) is not None
            found[fault, -1 if fault == COMMON_FAULT else int(feature)] = (one is not None, ranked, single)
    return seed, false, cost, found


def make_plant(between, seed):
    """The values `[T, 8]` of four sensors and four switches."""
    rng = np.random.default_rng([between, seed])
    factors, noise = np.zeros((PLANT_LENGTH, 2)), rng.normal(size=(PLANT_LENGTH, 2)) * np.sqrt(1 - MEMORY**2)
    for t in range(1, PLANT_LENGTH):
        factors[t] = MEMORY * factors[t - 1] + noise[t]
    sensors = factors @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(PLANT_LENGTH, 4))
    switches = np.zeros((PLANT_LENGTH, 4))
    for number in range(4):
        at = 0
        while at < PLANT_LENGTH:
            at += 1 + int(rng.exponential(between * (1 + number)))
            lasts = int(rng.integers(1, LONGEST_PULSE + 1))
            switches[at : at + lasts, number] = 1.0
            at += lasts
    sensors[:, 0] += 0.5 * switches[:, 0]
    return np.column_stack([sensors, switches])


def watch_plant(task):
    """How many false incidents there are once the plant's own past is long enough."""
    detector = Detector(8, preset="light", alarm_rate=RATE)
    detector.run(make_plant(*task))
    return sum(one.first >= PLANT_START for one in detector.incidents)


def charts(values):
    """The statistics of the rivals after a clean start: T-squared and Q, and the largest EWMA."""
    start = values[:START]
    centre, scale = start.mean(axis=0), start.std(axis=0)
    z = (values - centre) / scale
    sizes, axes = np.linalg.eigh(np.corrcoef(start.T))
    order = np.argsort(sizes)[::-1]
    kept = order[: int(np.searchsorted(np.cumsum(sizes[order]) / sizes.sum(), EXPLAINED)) + 1]
    kept = kept[: len(order) - 1]  # Q needs something that is left over
    parts = z @ axes[:, kept]
    smooth = np.zeros_like(z)
    for t in range(1, len(z)):
        smooth[t] = (1 - SMOOTHING) * smooth[t - 1] + SMOOTHING * z[t]
    return {
        "T2 and Q": np.stack([(parts**2 / sizes[kept]).sum(axis=1), ((z - parts @ axes[:, kept].T) ** 2).sum(axis=1)]),
        "EWMA": np.abs(smooth).max(axis=1)[np.newaxis],
    }


def incidents(alarms):
    """How many runs of alarms there are, with at most `GAP` observations between two of one run."""
    at = np.flatnonzero(alarms)
    return int(at.size > 0) + int((np.diff(at) > GAP + 1).sum())


def thresholds(statistics, allowed):
    """Those with at most this many incidents on all of these, each statistic beyond its own equally often."""
    pooled = np.sort(np.concatenate(statistics, axis=1), axis=1)
    for beyond in range(pooled.shape[1] // 10, 0, -1):
        limits = pooled[:, -beyond]
        if sum(incidents((one > limits[:, np.newaxis]).any(axis=0)) for one in statistics) <= allowed:
            return limits
    return np.full(pooled.shape[0], np.inf)


def rivals(features, results):
    """What each rival finds, by name and fault, with as many false incidents."""
    signals = {seed: make_signal(features, seed) for seed, *_ in results}
    usual = {seed: charts(signal[0]) for seed, signal in signals.items()}
    false = sum(one[1] for one in results)
    found = {}
    for name in ("T2 and Q", "EWMA"):
        limits = thresholds([one[name][:, START:CLEAN] for one in usual.values()], false)[:, np.newaxis]
        for seed, _, _, faults in results:
            clean = (usual[seed][name][:, CLEAN:] > limits).any(axis=0)
            for fault, feature in faults:
                values = signals[seed][0].copy()
                values[CLEAN:] = with_fault(fault, max(feature, 0), signals[seed])
                alarms = (charts(values)[name][:, CLEAN:] > limits).any(axis=0)
                found.setdefault((name, fault), []).append(bool((alarms & ~clean).any()))
    return {key: float(np.mean(one)) for key, one in found.items()}


def extra_cost(features, steps=1500):
    """Microseconds that the view of relations takes for each feature of an observation in a history."""
    values = make_signal(features, 0)[0]
    spent = []
    for views in (VIEWS, tuple(name for name in VIEWS if name != "relation")):
        detector = Detector(features, preset="light", alarm_rate=RATE, views=views)
        detector.run(values[:steps])
        begun = time.process_time()
        detector.run(values[steps : 2 * steps])
        spent.append((time.process_time() - begun) / features / steps)
    return 1e6 * (spent[0] - spent[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--signals", type=float, default=1.0, help="so many times the usual number of signals")
    parser.add_argument("--features", type=int, nargs="+", choices=SIGNALS, default=[2, 10, 50], help="in one signal")
    given = parser.parse_args()
    counts = {features: max(round(given.signals * SIGNALS[features][0]), 2) for features in given.features}
    # The longest first.
    tasks = [(features, seed, SIGNALS[features][1]) for features in sorted(counts, reverse=True)
             for seed in range(counts[features])]  # fmt: skip
    with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as pool:
        done = list(pool.map(watch, tasks))
        plants = [(between, seed) for between in BETWEEN_PULSES for seed in range(PLANTS)]
        in_plants = np.reshape(list(pool.map(watch_plant, plants)), (len(BETWEEN_PULSES), PLANTS)).sum(axis=1)
    screen = Console(width=120, highlight=False)
    table = Table(box=SIMPLE_HEAD, title=f"Found, at one false incident in {1 / RATE:.0f} observations")
    for heading in ("features", "fault", "Tocsin", "alone", "T2 and Q", "EWMA", "cause first", "among three"):
        table.add_column(heading, justify="left" if heading == "fault" else "right")
    worst, drowned, top1, top3, false, promised = -1.0, {}, [], [], {}, {}
    for features, count in counts.items():
        results = [one for task, one in zip(tasks, done, strict=True) if task[0] == features]
        others = rivals(features, results)
        false[features] = sum(one[1] for one in results)
        promised[features] = RATE * count * (CLEAN - START)
        for fault in FAULTS:
            cells = [(feature, one) for *_, found in results for (name, feature), one in found.items() if name == fault]
            ours, alone = np.mean([one[0] for _, one in cells]), np.mean([one[2] for _, one in cells])
            worst = max(worst, max(others[name, fault] for name in ("T2 and Q", "EWMA")) - ours)
            drowned[features, fault] = alone - ours
            first = [feature == one[1][0] for feature, one in cells if one[0] and feature >= 0]
            three = [feature in one[1][:3] for feature, one in cells if one[0] and feature >= 0]
            if features > 2:  # of two that part, nobody can tell which one left
                top1, top3 = top1 + first, top3 + three
            named = [f"{np.mean(part):.2f}" if part else "" for part in (first, three)]
            rates = (ours, alone, others["T2 and Q", fault], others["EWMA", fault])
            table.add_row(str(features), fault, *(f"{rate:.2f}" for rate in rates), *named)
    screen.print(table)
    for features in counts:
        screen.print(f"{features} features: {false[features]} false incidents, {promised[features]:.0f} promised")
    promised_in_plants = RATE * PLANTS * (PLANT_LENGTH - PLANT_START)
    for between, number in zip(BETWEEN_PULSES, in_plants, strict=True):
        screen.print(f"switches, a pulse in {between}: {number} false incidents, {promised_in_plants:.0f} promised")
    most = max(counts)
    print(
        f"worst_cell={worst:.2f} drown_{most}={drowned[most, SHIFT]:.2f} "
        f"false_ratio={sum(false.values()) / sum(promised.values()):.2f} cause_top1={np.mean(top1):.2f} "
        f"cause_top3={np.mean(top3):.2f} switch_ratio={in_plants.max() / promised_in_plants:.2f} "
        f"us_per_feature={extra_cost(10 if 10 in counts else most):.1f}"
    )


if __name__ == "__main__":
    main()
