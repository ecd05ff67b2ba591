"""Results by the rules of other benchmarks, beside what they publish: NAB and the UCR anomaly archive."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tocsin_bench.files import LabelledFile
from tocsin_bench.metrics.nab import PROFILES, Integers, NabScore, ScoredFile, nab_score
from tocsin_bench.report.measures import forecaster_order, method_order, ranked_by
from tocsin_bench.report.sheet import Column, Number, Row, Sheet, best_of, count
from tocsin_bench.report.summaries import grouped
from tocsin_bench.results import BenchmarkResults, Floats, MethodRun

NAB_FILES = 58
"""How many files NAB has."""

NAB_PUBLISHED = {
    "ARTime": (74.9, 65.2, 80.4),
    "Numenta HTM": (70.5, 62.6, 75.2),
    "KNN-CAD": (58.0, 43.4, 64.8),
    "windowed Gaussian": (39.6, 20.9, 47.4),
}
"""Scores by profile, on all files: the scoreboard of github.com/numenta/NAB, ARTime from its final_results.json."""

UCR_FILES = 250
"""How many files the UCR anomaly archive has."""

UCR_NEAR = 100
"""How far from the anomaly the highest score may be."""

_INCIDENTS = ", its incidents"
_HEADINGS = tuple(Column(name, numeric=False) for name in ("forecaster", "method", "ranked by"))


def nab_sheet(results: BenchmarkResults, runs: Sequence[MethodRun], windows: Mapping[str, Integers]) -> Sheet:
    """NAB's score of each method by profile, at the best threshold; incidents count where each begins."""
    rows: list[tuple[str, str, tuple[NabScore, ...], int]] = []
    for forecaster, method, of_method in _by_method(runs):
        traces = [results.trace_of(*run.key) for run in of_method]
        rows.append(_nab_row(forecaster, method, of_method, windows, [trace_scores(path) for path in traces]))
        starts = [_incident_starts(path) for path in traces]
        known = [one for one in starts if one is not None]
        if len(known) == len(starts):
            rows.append(_nab_row(forecaster, f"{method}{_INCIDENTS}", of_method, windows, known, threshold=1.0))
    columns = [[row[2][place].score for row in rows] for place in range(len(PROFILES))]
    best = [best_of(column, +1, 1) for column in columns]
    found: list[Row] = [
        (forecaster, method, "nothing" if method.endswith(_INCIDENTS) else ranked_by(method),
         *(Number(score.score, decimals=1, best=best[place][number]) for place, score in enumerate(scores)),
         count(files))
        for number, (forecaster, method, scores, files) in enumerate(rows)
    ]  # fmt: skip
    published: list[Row] = [
        (
            "",
            f"{name} (published, all {NAB_FILES} files)",
            "",
            *(Number(score, decimals=1) for score in scores),
            count(NAB_FILES),
        )
        for name, scores in NAB_PUBLISHED.items()
    ]
    headings = (*_HEADINGS, *map(Column, (*PROFILES, "files")))
    return Sheet("nab", "NAB", headings, ((*found, *published),), _nab_note(len(windows)))


def _nab_row(
    forecaster: str, method: str, runs: Sequence[MethodRun], windows: Mapping[str, Integers], scores: Sequence[Floats],
    threshold: float | None = None,
) -> tuple[str, str, tuple[NabScore, ...], int]:  # fmt: skip
    files = [ScoredFile(one, windows[run.file]) for run, one in zip(runs, scores, strict=True)]
    return forecaster, method, tuple(nab_score(files, profile, threshold) for profile in PROFILES.values()), len(files)


def _nab_note(files: int) -> str:
    note = (
        "NAB's score: 0 for no alarm at all, 100 for a perfect detector. One threshold for all files, the best one in "
        "hindsight, as NAB has it; incidents are those at an alarm rate of .001, with no threshold chosen. Published: "
        "the scoreboard of github.com/numenta/NAB."
    )
    if files == NAB_FILES:
        return note
    return (
        f"Only {files} of NAB's {NAB_FILES} files: the published numbers are of all of them, and not comparable. {note}"
    )


def ucr_sheet(results: BenchmarkResults, runs: Sequence[MethodRun], files: Mapping[str, LabelledFile]) -> Sheet:
    """The share of files in which the highest score is near the anomaly, by method."""
    rows = []
    for forecaster, method, of_method in _by_method(runs):
        hits = [
            near_anomaly(trace_scores(results.trace_of(*run.key)), files[run.file])
            for run in of_method
            if files[run.file].labels.any()
        ]
        rows.append((forecaster, method, float(np.mean(hits)) if hits else np.nan, sum(hits), len(hits)))
    best = best_of([row[2] for row in rows], +1, 3)
    found: list[Row] = [
        (forecaster, method, ranked_by(method), Number(accuracy, best=is_best), count(right), count(tried))
        for (forecaster, method, accuracy, right, tried), is_best in zip(rows, best, strict=True)
    ]
    headings = (*_HEADINGS, *map(Column, ("accuracy", "correct", "files")))
    part = "" if len(files) == UCR_FILES else f"Only {len(files)} files; the archive has {UCR_FILES}. "
    note = f"{part}A file is correct if the highest score after its training part is within {UCR_NEAR} of the anomaly."
    return Sheet("ucr", "UCR anomaly archive", headings, (tuple(found),), note)


def near_anomaly(scores: Floats, file: LabelledFile) -> bool:
    """Whether the highest score after the calibration part is within `UCR_NEAR` of an anomaly; the first of equals."""
    highest = file.calibration + int(np.argmax(scores[file.calibration :]))
    return bool(file.labels[max(highest - UCR_NEAR, 0) : highest + UCR_NEAR + 1].any())


def trace_scores(path: Path) -> Floats:
    """How anomalous each observation is, as the method orders them: its severity, or 1 - p; lowest where unknown."""
    with np.load(path) as trace:
        scores = trace["severity"] if "severity" in trace else 1 - trace["p"]
    return np.where(np.isnan(scores), -np.inf, scores)


def _incident_starts(path: Path) -> Floats | None:
    """1 where an incident of the method begins, 0 elsewhere; nothing if it has none of its own."""
    with np.load(path) as trace:
        if "incidents" not in trace:
            return None
        starts = np.zeros(trace["p"].size)
        starts[trace["incidents"][:, 0]] = 1.0
    return starts


def _by_method(runs: Sequence[MethodRun]) -> list[tuple[str, str, list[MethodRun]]]:
    found = grouped([run for run in runs if run.status == "ok"], lambda run: (run.forecaster, run.method))
    order = sorted(found, key=lambda key: (forecaster_order(key[0]), method_order(key[1])))
    return [(*key, found[key]) for key in order]
