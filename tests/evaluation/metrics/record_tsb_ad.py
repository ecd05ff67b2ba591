"""Records what TSB-AD makes of generated cases, for `test_tsb_ad.py`, in an environment of its own:

    python3 -m venv /tmp/tsb-ad
    /tmp/tsb-ad/bin/pip install --no-deps TSB-AD==1.5
    /tmp/tsb-ad/bin/pip install "numpy<2" pandas scipy scikit-learn matplotlib statsmodels
    /tmp/tsb-ad/bin/python tests/evaluation/metrics/record_tsb_ad.py

`tsb_ad.npz` was recorded with TSB-AD 1.5, numpy 1.26.4, scikit-learn 1.9.1, scipy 1.17.1 and statsmodels 0.15.0, from
- `basic_metricor`: `metric_PR`, `metric_ROC`, `metric_PointF1`, `metric_PointF1PA`, `metric_EventF1PA`, `metric_RF1`,
  `metric_Affiliation`, and `pr_from_events` for affiliation's precision and recall;
- `generate_curve(..., version="opt", thre=250)` for the volumes under the surfaces;
- `find_length_rank(..., rank=1)` for the window.

Scores are kept as whole numbers, of which TSB-AD gets the shares of `SCALE`. Three of its functions slip at the ends of
a signal, so these are recorded on the signal as it is and also between two more normal observations without alarm,
which change neither alarms nor events.
"""

import warnings
from pathlib import Path

import numpy as np

SCALE = 2**16
FILE = Path(__file__).with_name("tsb_ad.npz")
KINDS = {
    "few events": lambda rng, n: (stretches(rng, n, 3, n // 12 + 1), None),
    "many events": lambda rng, n: (stretches(rng, n, n // 12, 6), None),
    "labels by the toss of a coin": lambda rng, n: (rng.random(n) < 0.5, None),
    "events close together": lambda rng, n: (clusters(rng, n), None),
    "one long event": lambda rng, n: (between(n, n // 4, 3 * n // 4), None),
    "almost all anomalous": lambda rng, n: (~stretches(rng, n, 2, 3), None),
    "events at the borders": lambda rng, n: (between(n, 0, 5) | between(n, n - 7, n) | between(n, 20, 25), None),
    "single observations at the borders": lambda rng, n: (between(n, 0, 1) | between(n, n - 1, n), None),
    "ties": lambda rng, n: (stretches(rng, n, 4, 9), lambda scores: scores // 11000 * 11000),
    "constant scores": lambda rng, n: (stretches(rng, n, 4, 9), lambda scores: 0 * scores + 777),
    "like p-values": lambda rng, n: (stretches(rng, n, 4, 9), lambda scores: np.minimum(scores // 650 * 655, 64880)),
    "two scores": lambda rng, n: (stretches(rng, n, 4, 9), lambda scores: np.where(scores > 60000, SCALE - 1, 0)),
}
LENGTHS = (50, 131, 400, 1000)
LONG = {"few events": 5000, "many events": 2500, "like p-values": 5000}
WINDOWS = (0, 1, 2, 3, 5, 7, 10, 24, 25, 61, 100, 125, 200)


def between(length, start, stop):
    at = np.arange(length)
    return (at >= start) & (at < stop)


def stretches(rng, length, count, longest):
    labels = np.zeros(length, dtype=bool)
    for start in rng.integers(1, length - 1, size=count):
        labels[start : start + rng.integers(1, longest + 1)] = True
    labels[-1] = False
    return labels


def clusters(rng, length):
    """Events and gaps of one to four observations, with long gaps now and then."""
    labels, at = np.zeros(length, dtype=bool), 5
    while at < length - 8:
        stop = at + rng.integers(1, 5)
        labels[at:stop] = True
        at = stop + (rng.integers(1, 5) if rng.random() < 0.8 else rng.integers(20, 60))
    return labels


def cases(rng):
    """Kind, labels and scores of each case."""
    for kind, make in KINDS.items():
        for length in (*LENGTHS, *([LONG[kind]] if kind in LONG else [])):
            labels, coarser = make(rng, length)
            # Strange during events and for a while after, more or less clearly.
            after = np.convolve(labels, np.full(7, 1 / 7))[:length]
            shares = rng.random(length) ** (1 / (1 + rng.choice([0, 1, 5]) * after))
            scores = np.floor(shares * SCALE).astype(np.int64)
            yield kind, labels, scores if coarser is None else coarser(scores)


def signals(rng):
    """Signals with and without periods, in whole numbers."""
    for length in (20, 100, 800, 2000):
        noise = rng.normal(size=length)
        at = np.arange(length)
        yield 1000 * noise
        yield 1000 * np.cumsum(noise)
        for period in (4, 7, 24, 90, 288, 350):
            yield 1000 * (np.sin(2 * np.pi * at / period) + 0.3 * noise)
        yield 1000 * ((at % 48 < 3) + 0.05 * noise)
        yield 100 * at
    # Only what comes first is looked at.
    at = np.arange(24_000)
    yield np.where(at < 20_000, at % 37, 3 * (at % 50))


def recorded(labels, scores, window):
    """The rankings' metrics."""
    from TSB_AD.evaluation.basic_metrics import basic_metricor, generate_curve

    grader = basic_metricor()
    *_, vus_roc, vus_pr = generate_curve(labels, scores, window, "opt", 250)
    return grader.metric_PR(labels, scores), grader.metric_ROC(labels, scores), vus_pr, vus_roc


def recorded_of_alarms(labels, alarms):
    """The metrics of alarms."""
    from TSB_AD.evaluation.affiliation.generics import convert_vector_to_events
    from TSB_AD.evaluation.affiliation.metrics import pr_from_events
    from TSB_AD.evaluation.basic_metrics import basic_metricor

    grader = basic_metricor()
    nearness = pr_from_events(convert_vector_to_events(alarms), convert_vector_to_events(labels), (0, len(labels)))
    return (
        grader.metric_PointF1(labels, alarms, preds=alarms),
        *recorded_slipping(labels, alarms),
        nearness["Affiliation_Precision"],
        nearness["Affiliation_Recall"],
        grader.metric_Affiliation(labels, alarms, preds=alarms),
    )


def recorded_slipping(labels, alarms):
    """Those metrics of alarms that depend on whether something is at the ends of a signal."""
    from TSB_AD.evaluation.basic_metrics import basic_metricor

    grader = basic_metricor()
    return (
        grader.metric_PointF1PA(labels, alarms, preds=alarms),
        grader.metric_EventF1PA(labels, alarms, preds=alarms),
        grader.metric_RF1(labels, alarms, preds=alarms),
    )


def main():
    from TSB_AD.utils.slidingWindows import find_length_rank

    warnings.simplefilter("ignore")  # of precisions without alarms
    rng = np.random.default_rng(20260)
    rows = {name: [] for name in ("kinds", "lengths", "windows", "rankings", "thresholds", "of_alarms", "between")}
    all_labels, all_scores = [], []
    for number, (kind, labels, scores) in enumerate(cases(rng)):
        window = WINDOWS[5 * number % len(WINDOWS)]
        # Alarms everywhere, on many, some and few observations, and nowhere.
        thresholds = [-1, *np.quantile(scores, [0.5, 0.9, 0.98]).astype(np.int64) - 1, scores.max()]
        of_alarms, between_normal = [], []
        for threshold in thresholds:
            alarms = (scores > threshold).astype(int)
            of_alarms.append(recorded_of_alarms(labels.astype(int), alarms))
            between_normal.append(recorded_slipping(np.pad(labels.astype(int), 1), np.pad(alarms, 1)))
        rankings = recorded(labels.astype(int), scores / SCALE, window)
        found = (kind, labels.size, window, rankings, thresholds, of_alarms, between_normal)
        for column, value in zip(rows.values(), found, strict=True):
            column.append(value)
        all_labels.append(labels)
        all_scores.append(scores)
        print(kind, labels.size, window, *np.round(rankings, 4))
    whole = [np.rint(signal).astype(np.int32) for signal in signals(rng)]
    np.savez_compressed(
        FILE,
        **{name: np.array(column) for name, column in rows.items()},
        labels=np.packbits(np.concatenate(all_labels)),
        scores=np.concatenate(all_scores).astype(np.uint16),
        signals=np.concatenate(whole),
        signal_lengths=np.array([signal.size for signal in whole]),
        signal_windows=np.array([find_length_rank(signal.astype(float), rank=1) for signal in whole]),
    )
    print(f"{FILE}: {FILE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
