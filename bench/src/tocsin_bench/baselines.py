"""Baselines: the methods of TSB-AD, run in their own Python."""

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin import checks

Floats = NDArray[np.float64]

START_TIMEOUT = 180.0  # seconds: the first import of TSB-AD compiles and reads much
_SCRIPT = Path(__file__).with_name("baseline_worker.py")
# More threads slow down networks this small, and numba's threads would make torch start as many again.
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
_INSTALL = "pip install TSB-AD, in an environment of its own, and name that environment's Python"


@dataclass(frozen=True)
class Baseline:
    """A method of TSB-AD: `univariate` if it takes one feature only, `trained` if it learns on the calibration part."""

    description: str
    univariate: bool = True
    trained: bool = False


BASELINES: dict[str, Baseline] = {
    "kshape": Baseline("distance from the shapes that k-Shape finds among the subsequences of the whole file"),
    "poly": Baseline("residual from a polynomial through the neighbourhood, against its volatility (GARCH)"),
    "sub-pca": Baseline("distance of a subsequence along the principal components of all subsequences"),
    "sub-knn": Baseline("distance of a subsequence to its k-th nearest neighbour in the whole file"),
    "sand": Baseline("k-Shape batch by batch; older shapes lose weight"),
    "cnn": Baseline("error of a convolutional forecaster", univariate=False, trained=True),
    "usad": Baseline("reconstruction error of two adversarial autoencoders", univariate=False, trained=True),
    "omnianomaly": Baseline("reconstruction error of a recurrent variational autoencoder", False, True),
    "moment": Baseline("zero-shot reconstruction error of the foundation model MOMENT"),
}
"""The methods by name."""


class BaselineError(Exception):
    """A baseline gave no scores; the message says why."""


class _WorkerDiedError(Exception):
    """The process ended without an answer."""


class BaselineWorker:
    """A process that runs the baselines, under a Python that has TSB-AD.

    Use it in a `with` block. A process that died or was stopped is started again by the next request. `seconds` and
    `settings` are the time and the hyper-parameters of the latest scores.
    """

    def __init__(self, python: str) -> None:
        self.python = python
        self.seconds = 0.0
        self.settings: dict[str, Any] = {}
        self._process: subprocess.Popen[str] | None = None
        self._answers: Queue[str] = Queue()

    def __enter__(self) -> Self:
        self._temporary = tempfile.TemporaryDirectory(prefix="tocsin-baselines-", ignore_cleanup_errors=True)
        self._folder = Path(self._temporary.name)
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused: object) -> None:
        self._stop()
        self._temporary.cleanup()

    def scores(
        self,
        method: str,
        values: ArrayLike,
        calibration: int,
        timeout: float | None = None,
        *,
        hyper_parameters: Mapping[str, Any] | None = None,
    ) -> Floats:
        """A score for each observation of values[T, F], larger is more anomalous; it fails after `timeout` seconds.

        The first `calibration` observations are what trained methods learn from. `hyper_parameters` change single ones
        of TSB-AD's best.
        """
        baseline = BASELINES[checks.choice("method", method, BASELINES)]
        signal = checks.numbers("values", values)
        if signal.ndim != 2 or 0 in signal.shape:
            raise ValueError(f"values must have the shape [observations, features], got {signal.shape}")
        calibration = checks.integer("calibration", calibration, least=0, most=len(signal))
        if baseline.univariate and signal.shape[1] > 1:
            raise BaselineError(f"{method} takes signals of one feature, got {signal.shape[1]}")
        if missing := int((~np.isfinite(signal)).sum()):
            raise BaselineError(f"{method} takes no missing values, got {missing} of {signal.size}")
        given, out = self._folder / "values.npy", self._folder / "scores.npy"
        np.save(given, signal)
        out.unlink(missing_ok=True)
        request = {
            "method": method,
            "values": str(given),
            "calibration": calibration,
            "out": str(out),
            "hyper_parameters": dict(hyper_parameters or {}),
        }
        answer = self._ask(method, request, timeout)
        scores = checks.numbers(f"scores of {method}", np.load(out))
        if scores.shape != (len(signal),):
            raise BaselineError(f"{method} gave scores of shape {scores.shape} for {len(signal)} observations")
        if bad := int((~np.isfinite(scores)).sum()):
            raise BaselineError(f"{method} gave {bad} of {scores.size} scores that are no numbers (NaN or infinite)")
        self.seconds, self.settings = float(answer["seconds"]), answer["settings"]
        return scores

    def _ask(self, method: str, request: Mapping[str, Any], timeout: float | None) -> dict[str, Any]:
        if self._process is None:
            self._start()
        os.truncate(self._chatter, 0)
        try:
            answer = self._exchange(json.dumps(request), timeout)
        except TimeoutError as error:
            raise BaselineError(f"{method} gave no scores within {timeout:g} seconds and was stopped") from error
        except _WorkerDiedError as error:
            raise BaselineError(f"{method} ended its process: {error}") from error
        if "error" in answer:
            raise BaselineError(f"{method} failed: {answer['error']}")
        return answer

    @property
    def _chatter(self) -> Path:
        """Where the worker's stderr goes, for the message if it dies."""
        return self._folder / "chatter.txt"

    def _start(self) -> None:
        try:
            with self._chatter.open("ab") as chatter:  # appended to, so that it can be emptied between requests
                self._process = subprocess.Popen(  # noqa: S603  the user names the interpreter
                    [self.python, str(_SCRIPT)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=chatter,
                    text=True,
                    encoding="utf-8",
                    env={**_ONE_THREAD, **os.environ},
                )
        except OSError as error:
            raise BaselineError(f"cannot start the Python {self.python!r}: {error}. To get one: {_INSTALL}") from error
        self._answers = Queue()
        threading.Thread(target=_forward, args=(self._process, self._answers), daemon=True).start()
        try:
            answer = self._exchange(None, START_TIMEOUT)
        except TimeoutError as error:
            raise BaselineError(f"{self.python!r} did not load TSB_AD within {START_TIMEOUT:g} seconds") from error
        except _WorkerDiedError as error:
            answer = {"error": str(error)}
        if "error" in answer:
            self._stop()
            raise BaselineError(f"{self.python!r} cannot load TSB_AD: {answer['error']}. What it needs: {_INSTALL}")

    def _exchange(self, line: str | None, timeout: float | None) -> dict[str, Any]:
        """Send a line, if there is one, and wait for the answer; a worker that gives none is stopped."""
        process = self._process
        assert process is not None  # noqa: S101  for mypy: it was started,
        assert process.stdin is not None  # noqa: S101  and with pipes
        try:
            if line is not None:
                process.stdin.write(line + "\n")
                process.stdin.flush()
            received = self._answers.get(timeout=timeout)
        except Empty as error:
            self._stop()
            raise TimeoutError from error
        except OSError:
            received = ""  # the pipe is broken
        except BaseException:
            self._stop()  # interrupted: the answer still to come would be taken for that of the next request
            raise
        if not received:
            with suppress(subprocess.TimeoutExpired):  # it has closed its pipe: wait for its exit status
                process.wait(timeout=10)
            self._stop()
            raise _WorkerDiedError(f"exit status {process.returncode}, {self._last_words()}")
        answer: dict[str, Any] = json.loads(received)
        return answer

    def _last_words(self) -> str:
        lines = self._chatter.read_text(encoding="utf-8", errors="replace").split("\n")
        return next((f"last words: {line.strip()[-300:]}" for line in reversed(lines) if line.strip()), "no words")

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        if process.stdin is not None:
            with suppress(OSError):  # nobody reads what was still to be sent
                process.stdin.close()


def _forward(process: subprocess.Popen[str], answers: "Queue[str]") -> None:
    """Pass on the lines of a process, and an empty one at its end: a queue can be waited for with a time limit."""
    assert process.stdout is not None  # noqa: S101  for mypy: started with pipes
    with process.stdout as lines:
        for line in lines:
            answers.put(line)
    answers.put("")


def min_max_pseudo_p(scores: ArrayLike) -> Floats:
    """1 minus the scores scaled to [0, 1] over the whole file, as the paper compares baselines; all 1 if constant.

    It is not a p-value: it is not uniform on normal data, and a threshold on it guarantees no alarm rate.
    """
    given = checks.numbers("scores", scores)
    if bad := int((~np.isfinite(given)).sum()):
        raise ValueError(f"scores must be finite numbers, got {bad} of {given.size} that are not")
    if given.size == 0:
        return given
    least, most = given.min(), given.max()
    if least == most:
        return np.ones_like(given)
    return np.asarray(1 - (given - least) / (most - least), dtype=np.float64)
