"""Runs many methods on many files, on all cores, and keeps every result."""

import atexit
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from tocsin_bench.baselines import BASELINES, BaselineWorker, min_max_pseudo_p
from tocsin_bench.files import LabelledFile, UnusableFileError, dataset_of, feature_count, read_file
from tocsin_bench.forecast_errors import ForecasterChoice, make_material, without_forecasts
from tocsin_bench.methods import Judgement, Method
from tocsin_bench.metrics import MIN_MAX_THRESHOLDS, THRESHOLDS, evaluate, false_positive_rate, find_window
from tocsin_bench.outside import OUTSIDE, column_of, read_scores
from tocsin_bench.results import (
    WHOLE,
    BenchmarkResults,
    Floats,
    ForecastErrors,
    JudgedFile,
    MethodRun,
    signal_path,
    trace_path,
)
from tocsin_bench.rivals import RIVALS
from tocsin_bench.sources import source_of

Key = tuple[str, str, str]
Progress = Callable[[str], None]

PROTOCOLS = {
    "paper": "what precedes `tr` is not evaluated",
    "tsb-ad": "the whole file is evaluated as well, as TSB-AD's leaderboard does",
}
"""How files are evaluated."""

_OF_WHOLE = ("vus_pr", "vus_roc", "auc_pr", "auc_roc", "pointwise_f1", "point_adjusted_f1", "event_based_f1",
             "range_based_f1", "affiliation_f1")  # fmt: skip


@dataclass(frozen=True)
class RunPlan:
    """What is run on every file.

    `rivals` are simple detectors, by name; `outside` are folders of scores from elsewhere, likewise. `baseline_python`
    is the Python that has TSB-AD, and `baseline_timeout` how many seconds a baseline may take for a file. Without
    `keeps_traces`, p-values are not written to disk, only metrics. `protocol` is one of `PROTOCOLS`. `reader` reads a
    file, or raises `UnusableFileError`.
    """

    forecasters: tuple[ForecasterChoice, ...] = ()
    methods: tuple[Method, ...] = ()
    horizons: int = 15
    rivals: tuple[str, ...] = ()
    baselines: tuple[str, ...] = ()
    baseline_python: str = ""
    baseline_timeout: float | None = None
    outside: tuple[tuple[str, Path], ...] = ()
    keeps_traces: bool = True
    protocol: str = "paper"
    reader: Callable[[Path], LabelledFile] = read_file

    def keys(self, name: str, several_features: bool) -> list[Key]:
        """The keys of all runs on a file."""
        methods = [variant for method in self.methods for variant in variants(method, several_features)]
        return [
            *(
                (name, forecaster.label, method.name)
                for forecaster in self.forecasters
                for method in methods
                if not method.forecasts_itself
            ),
            *((name, "", method.name) for method in methods if method.forecasts_itself),
            *((name, "", without) for without in (*self.rivals, *self.baselines)),
            *((name, "", OUTSIDE + outside) for outside, _ in self.outside),
        ]


def variants(method: Method, several_features: bool) -> list[Method]:
    """The method, or, for several features, one for each way to merge them."""
    return method.for_features() if several_features else [method]


@dataclass(frozen=True)
class FileOutcome:
    """The results of one file, if it could be used."""

    runs: list[MethodRun]
    forecasts: list[ForecastErrors]
    source: JudgedFile | None = None


def run_benchmark(
    paths: Sequence[Path], plan: RunPlan, results: BenchmarkResults, *, jobs: int = 1, progress: Progress | None = None
) -> None:
    """Run the plan on all files and add to the results; finished runs are not repeated.

    If a file or a method fails, its runs say so and the others continue. `progress` is called with the name of each
    finished file.
    """
    finished = results.finished()
    # The largest first, so that no core works alone at the end.
    todo = sorted(paths, key=lambda path: path.stat().st_size if path.exists() else 0, reverse=True)
    for path, outcome in _outcomes(todo, plan, finished, results.folder, jobs):
        results.add(outcome.runs, outcome.forecasts, outcome.source)
        if progress is not None:
            progress(path.stem)


def _outcomes(
    paths: Sequence[Path], plan: RunPlan, finished: set[Key], folder: Path, jobs: int
) -> Iterator[tuple[Path, FileOutcome]]:
    def own(path: Path) -> frozenset[Key]:
        return frozenset(key for key in finished if key[0] == path.stem)

    if jobs == 1:
        for path in paths:
            yield path, judge_file(path, plan, own(path), folder)
        return
    # Not forked: a fork of a process with threads (those of a progress bar, say) may hang forever.
    spawn = multiprocessing.get_context("spawn")
    left = dict.fromkeys(paths)
    with ProcessPoolExecutor(jobs, mp_context=spawn) as pool:
        futures = {pool.submit(judge_file, path, plan, own(path), folder): path for path in paths}
        try:
            for future in as_completed(futures):
                if not isinstance(future.exception(), BrokenProcessPool):
                    del left[futures[future]]
                    yield futures[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)  # do not wait for the others after an interrupt
    # A killed process takes the others with it: their unfinished files are run again, one by one.
    for path in left:
        with ProcessPoolExecutor(1, mp_context=spawn) as pool:
            yield path, _surviving(path, plan, own(path), pool.submit(judge_file, path, plan, own(path), folder))


def _surviving(path: Path, plan: RunPlan, finished: frozenset[Key], future: Future[FileOutcome]) -> FileOutcome:
    try:
        return future.result()
    except BrokenProcessPool as error:
        return FileOutcome(_undone(path, plan, finished, "failed", f"its process was killed: {error}"), [])


def _undone(path: Path, plan: RunPlan, finished: frozenset[Key], status: str, problem: str) -> list[MethodRun]:
    """A run for each unfinished method of a file that could not be run."""
    features = feature_count(path)
    return [
        MethodRun(*key[:1], dataset_of(path.stem), *key[1:], features=features, status=status, problem=problem)
        for key in plan.keys(path.stem, features > 1)
        if key not in finished
    ]


def judge_file(path: Path, plan: RunPlan, finished: frozenset[Key], folder: Path) -> FileOutcome:
    """Run all unfinished methods on one file; p-values are written to the folder, for pictures, if the plan says so."""
    try:
        file, source = plan.reader(path), source_of(path)
    except (UnusableFileError, OSError) as error:
        return FileOutcome(_undone(path, plan, finished, "skipped", str(error)), [])
    todo = {key for key in plan.keys(file.name, file.values.shape[1] > 1) if key not in finished}
    judged = _Judged(file, folder if plan.keeps_traces else None, whole=plan.protocol == "tsb-ad")
    for choice in plan.forecasters:
        judged.by_forecasts(plan, choice, todo)
    judged.by_themselves(plan, todo)
    for rival in plan.rivals:
        if (file.name, "", rival) in todo:
            judged.by_rival(rival)
    for baseline in plan.baselines:
        if (file.name, "", baseline) in todo:
            judged.by_baseline(plan, baseline)
    for name, scores in plan.outside:
        if (file.name, "", OUTSIDE + name) in todo:
            judged.by_outside(OUTSIDE + name, scores)
    return FileOutcome(judged.runs, judged.forecasts, source)


class _Judged:
    """One file, and its results so far; its p-values go to the folder, if there is one."""

    def __init__(self, file: LabelledFile, folder: Path | None, *, whole: bool = False) -> None:
        self.file, self.folder, self.whole = file, folder, whole
        self.runs: list[MethodRun] = []
        self.forecasts: list[ForecastErrors] = []
        self._window: int | None = None
        self._signal_kept = False

    def by_forecasts(self, plan: RunPlan, choice: ForecasterChoice, todo: set[Key]) -> None:
        """All methods on one forecaster, which forecasts once."""
        methods = self._methods(plan, choice.label, todo)
        if not methods:
            return
        try:
            material = make_material(self.file, choice, plan.horizons)
        except Exception as error:  # whatever a forecaster raises, the others continue
            self.runs += [self._failed(choice.label, method.name, error) for method in methods]
            return
        self.forecasts.append(material.forecast_errors)
        for method in methods:
            self._try(choice.label, method.name, dict(method.settings), partial(method, material))

    def by_themselves(self, plan: RunPlan, todo: set[Key]) -> None:
        """All methods that make their own forecasts."""
        material = without_forecasts(self.file)
        for method in self._methods(plan, "", todo):
            self._try("", method.name, dict(method.settings), partial(method, material))

    def _methods(self, plan: RunPlan, forecaster: str, todo: set[Key]) -> list[Method]:
        return [
            variant
            for method in plan.methods
            for variant in variants(method, self.file.values.shape[1] > 1)
            if method.forecasts_itself == (not forecaster) and (self.file.name, forecaster, variant.name) in todo
        ]

    def by_rival(self, name: str) -> None:
        """One of the simple detectors."""
        self._try("", name, {}, lambda: Judgement(min_max_pseudo_p(RIVALS[name](self.file))), MIN_MAX_THRESHOLDS)

    def by_baseline(self, plan: RunPlan, name: str) -> None:
        """One of the baselines, in the process that serves this one."""

        def judge() -> Judgement:
            worker = _baseline_worker(plan.baseline_python)
            scores = worker.scores(name, self.file.values, self.file.calibration, plan.baseline_timeout)
            return Judgement(min_max_pseudo_p(scores))

        if BASELINES[name].univariate and self.file.values.shape[1] > 1:
            self.runs.append(self._run("", name, status="skipped", problem="it takes signals of one feature only"))
            return
        self._try("", name, {}, judge, thresholds=MIN_MAX_THRESHOLDS)

    def by_outside(self, name: str, scores: Path) -> None:
        """External scores or p-values."""
        try:
            column = column_of(scores, self.file.name)
        except (OSError, ValueError) as error:
            self.runs.append(self._failed("", name, error))
            return
        length = self.file.labels.size
        thresholds = THRESHOLDS if column == "p" else MIN_MAX_THRESHOLDS
        judge = partial(read_scores, scores, self.file.name, length)
        self._try("", name, {"column": column}, lambda: Judgement(judge()), thresholds=thresholds)

    def _try(
        self,
        forecaster: str,
        method: str,
        settings: dict[str, Any],
        judge: Callable[[], Judgement],
        thresholds: Floats = THRESHOLDS,
    ) -> None:
        started = time.perf_counter()
        try:
            judgement = judge()
            seconds = time.perf_counter() - started
            before, evaluated = slice(self.file.calibration), slice(self.file.calibration, None)
            labels, p = self.file.labels[evaluated], judgement.p[evaluated]
            incidents = None if judgement.incidents is None else judgement.incidents - self.file.calibration
            severity = None if judgement.severity is None else judgement.severity[evaluated]
            order = judgement.p if judgement.severity is None else judgement.severity
            metrics = evaluate(
                labels, p, window=self.window, thresholds=thresholds, incidents=incidents, severity=severity,
                calibration=order[before],
            ).row()  # fmt: skip
            if self.whole:
                everything = evaluate(
                    self.file.labels, judgement.p, window=self.window, thresholds=thresholds,
                    severity=judgement.severity,
                ).row()  # fmt: skip
                metrics |= {WHOLE + name: everything[name] for name in _OF_WHOLE}
            rates = false_positive_rate(labels, p).tolist()
            self._trace(forecaster, method, judgement)
        except Exception as error:  # a method that fails is a row that says so
            self.runs.append(self._failed(forecaster, method, error))
            return
        self.runs.append(
            self._run(
                forecaster, method, settings=settings, seconds=seconds, metrics=metrics, false_positive_rates=rates,
                problem=self.file.problem,
            )
        )  # fmt: skip

    @property
    def window(self) -> int:
        """That of the volume under the surface: the period of the first feature."""
        if self._window is None:
            self._window = find_window(self.file.values[:, 0])
        return self._window

    def _run(self, forecaster: str, method: str, **more: Any) -> MethodRun:
        length, features = self.file.values.shape
        return MethodRun(
            self.file.name, self.file.dataset, forecaster, method, features=features, observations=length, **more
        )

    def _failed(self, forecaster: str, method: str, error: Exception) -> MethodRun:
        return self._run(forecaster, method, status="failed", problem=f"{type(error).__name__}: {error}")

    def _trace(self, forecaster: str, method: str, judgement: Judgement) -> None:
        file = self.file
        if self.folder is None:
            return
        if not self._signal_kept:  # there may be an old one, from an interrupted run on another file
            signal = signal_path(self.folder, file.name)
            _save(signal, values=file.values, labels=file.labels, first_evaluated=np.array(file.calibration))
            self._signal_kept = True
        also = {name: getattr(judgement, name) for name in ("weights", "errors", "severity", "incidents")}
        known = {name: array for name, array in also.items() if array is not None}
        _save(trace_path(self.folder, file.name, forecaster, method), p=judgement.p, **known)


def _save(path: Path, **arrays: Any) -> None:
    """Write arrays to a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        np.savez_compressed(file, **arrays)
    part.replace(path)


@cache
def _baseline_worker(python: str) -> BaselineWorker:
    """The worker of this process."""
    worker = BaselineWorker(python)
    worker.__enter__()
    atexit.register(worker.__exit__)
    return worker
