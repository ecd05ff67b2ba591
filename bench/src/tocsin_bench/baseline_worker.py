"""Runs TSB-AD's methods, in a Python of its own: started as `PYTHON baseline_worker.py`, never imported by tocsin.

TSB-AD wants another numpy than tocsin, so nothing of tocsin is imported here, and Python 3.9 is enough. For each line
of JSON on stdin (`method`; `values` and `out`, paths of .npy files; `calibration`; `hyper_parameters` that differ from
TSB-AD's own) one line goes to stdout: `{"ok": true, "seconds": ..., "settings": ...}` or `{"error": "..."}`. The first
line, before any request, says in the same way whether TSB-AD can be used.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import os
import random
import signal
import sys
import threading
import time
import traceback
from itertools import chain
from queue import Queue
from typing import Any, NamedTuple, TextIO

import numpy as np

SEED = 2024  # as TSB-AD's own main program has it
MOMENT_WEIGHTS = "AutonLab/MOMENT-1-base"

Settings = dict[str, Any]


class BaselineMethod(NamedTuple):
    """Where TSB-AD has a method: `run_NAME` with its hyper-parameters, in the module that it imports when called."""

    name: str
    module: str
    trained: bool = False


METHODS = {
    "kshape": BaselineMethod("KShapeAD", "SAND"),
    "poly": BaselineMethod("POLY", "POLY"),
    "sub-pca": BaselineMethod("Sub_PCA", "PCA"),
    "sub-knn": BaselineMethod("Sub_KNN", "KNN"),
    "sand": BaselineMethod("SAND", "SAND"),
    "cnn": BaselineMethod("CNN", "CNN", trained=True),
    "usad": BaselineMethod("USAD", "USAD", trained=True),
    "omnianomaly": BaselineMethod("OmniAnomaly", "OmniAnomaly", trained=True),
    "moment": BaselineMethod("MOMENT_ZS", "MOMENT"),
}


def scores_of(request: dict[str, Any]) -> tuple[Any, float, Settings]:
    """The scores that a request asks for, how long the method took, and with which settings."""
    method = METHODS[request["method"]]
    values = np.load(request["values"])
    calibration = request["calibration"]
    if request["method"] == "moment":
        check_moment()
    importlib.import_module("TSB_AD.models." + method.module)  # before the clock starts: torch takes seconds
    settings = {**optimal(method.name, values.shape[1]), **request.get("hyper_parameters", {})}
    seed_everything()
    start = time.perf_counter()
    if request["method"] in ("kshape", "sand"):
        online = calibration if request["method"] == "sand" else None
        scores, settings = shape_scores(values, online, **settings)
    else:
        run = getattr(importlib.import_module("TSB_AD.model_wrapper"), "run_" + method.name)
        scores = run(values[:calibration], values, **settings) if method.trained else run(values, **settings)
    return np.asarray(scores, dtype=np.float64), time.perf_counter() - start, settings


def optimal(name: str, features: int) -> Settings:
    """The hyper-parameters that TSB-AD found to be the best."""
    lists = importlib.import_module("TSB_AD.HP_list")
    found: Settings = (lists.Optimal_Uni_algo_HP_dict if features == 1 else lists.Optimal_Multi_algo_HP_dict)[name]
    return found


def seed_everything() -> None:
    """The same scores for the same request, whatever came before."""
    random.seed(SEED)
    np.random.seed(SEED)  # noqa: NPY002  the global generator is the one that TSB-AD uses
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(SEED)


def shape_scores(values: Any, calibration: int | None, periodicity: int) -> tuple[Any, Settings]:
    """Distances from the shapes that k-Shape finds: at once, or batch after batch (SAND) if there is a calibration.

    TSB-AD's own `run_KShapeAD` and `run_SAND` step by 1.5 periods and take as last batch whatever remains. Where that
    gives a batch fewer subsequences than there are to be clusters, k-Shape refuses. Only there, this differs: batches
    are of one length, and steps shorter where they must be.
    """
    find_period = importlib.import_module("TSB_AD.utils.slidingWindows").find_length_rank
    period = int(find_period(values, rank=periodicity))
    model = importlib.import_module("TSB_AD.models.SAND").SAND(pattern_length=period, subsequence_length=4 * period)
    starts, gaps, step = len(values) - model.subsequence_length, model.k - 1, int(1.5 * period)
    online: Settings = {}
    smallest = starts
    if calibration is not None:
        wanted = max(5 * period, len(values) // 10)
        first, batch, smallest = batch_lengths(starts, calibration, wanted, least=gaps * step + 1)
        online = {"online": True, "alpha": 0.5, "init_length": first, "batch_size": batch}
    step = min(step, (smallest - 1) // gaps)
    if step < 1:
        raise ValueError(
            f"{len(values)} observations are too few for {model.k} clusters of subsequences of "
            f"{model.subsequence_length}, four periods"
        )
    model.fit(values[:, 0], overlaping_rate=step, **online)
    settings = {"periodicity": periodicity, "period": period, "overlaping_rate": step, **online}
    return model.decision_scores_, settings


def batch_lengths(starts: int, first: int, batch: int, least: int) -> tuple[int, int, int]:
    """How long the first batch, the others and the shortest are: as given if none is below `least`, or made even."""
    last = (starts - first - 1) % batch + 1
    if first < starts and min(first, batch, last) >= least:
        return first, batch, min(first, batch, last)
    first = min(first, starts // 2)
    count = max(1, (starts - first) // batch)
    batch = math.ceil((starts - first) / count)
    return first, batch, min(first, starts - first - (count - 1) * batch)


def check_moment() -> None:
    """Say what MOMENT lacks here, before anything tries to download it."""
    if importlib.util.find_spec("momentfm") is None:
        raise RuntimeError("MOMENT needs the package momentfm (pip install momentfm) and its weights")
    cached = importlib.import_module("huggingface_hub").try_to_load_from_cache
    if not any(isinstance(cached(MOMENT_WEIGHTS, file), str) for file in ("model.safetensors", "pytorch_model.bin")):
        raise RuntimeError(
            f"the weights {MOMENT_WEIGHTS} are not in the cache of Hugging Face, and nothing is downloaded here; "
            f"fetch them with: hf download {MOMENT_WEIGHTS}"
        )
    if not importlib.import_module("torch").cuda.is_available():
        raise RuntimeError("TSB-AD runs MOMENT on a CUDA device only, and there is none")


def answer(request: dict[str, Any] | None) -> dict[str, Any]:
    """Write the scores of a request where it says, or greet if there is none; failures are answers, too."""
    try:
        if request is None:
            importlib.import_module("TSB_AD.model_wrapper")
            return {"ok": True}
        scores, seconds, settings = scores_of(request)
        np.save(request["out"], scores)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}
    return {"ok": True, "seconds": seconds, "settings": settings}


def take_over_pipes() -> tuple[TextIO, TextIO]:
    """The pipes for requests and answers, out of reach: whatever a library prints goes to stderr."""
    requests, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return requests, answers


def receive(requests: TextIO, waiting: Queue[str]) -> None:
    """Take requests in; once there can be no more, nobody waits for an answer either."""
    for line in requests:
        waiting.put(line)
    os._exit(0)


def main() -> None:
    """Answer requests until the pipe that they come from is closed."""
    requests, answers = take_over_pipes()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started this process ends it
    os.environ["HF_HUB_OFFLINE"] = "1"
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != here]  # its files are no packages
    if not hasattr(np, "Inf"):
        setattr(np, "Inf", np.inf)  # noqa: B010  numpy 2 dropped the name, TSB-AD still uses it
    waiting: Queue[str] = Queue()
    threading.Thread(target=receive, args=(requests, waiting), daemon=True).start()
    for request in chain([None], map(json.loads, iter(waiting.get, None))):
        answers.write(json.dumps(answer(request)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
