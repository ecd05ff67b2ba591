"""The worker against a TSB_AD made up here, and, where there is one, against the real one."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tocsin_bench import baseline_worker
from tocsin_bench.baselines import BASELINES, BaselineError, BaselineWorker, min_max_pseudo_p

HP_LIST = """
Optimal_Uni_algo_HP_dict = {
    "Sub_PCA": {"scale": 2}, "CNN": {"lr": 1}, "KShapeAD": {"periodicity": 1}, "SAND": {"periodicity": 1},
}
Optimal_Multi_algo_HP_dict = {"CNN": {"lr": 7}}
"""

MODEL_WRAPPER = """
import os, sys, time
import numpy as np

print("chatter while importing")
old_name = np.Inf

def run_Sub_PCA(data, scale, behaviour="scores"):
    print("chatter from Python")
    os.write(1, b"chatter from below\\n")
    if behaviour == "raise":
        raise ValueError("no components today")
    if behaviour == "exit":
        sys.exit("had enough")
    if behaviour == "crash":
        print("the lights go out", flush=True)
        os._exit(3)
    if behaviour == "hang":
        time.sleep(60)
    if behaviour == "nan":
        return np.where(np.arange(len(data)) < 4, np.nan, 1.0)
    if behaviour == "short":
        return data[1:, 0]
    if behaviour == "random":
        return np.random.random(len(data))
    if behaviour == "threads":
        return np.full(len(data), float(os.environ["OMP_NUM_THREADS"] + "." + os.environ["NUMBA_NUM_THREADS"]))
    if behaviour == "import":
        import baselines
    if behaviour == "read":
        return np.full(len(data), len(sys.stdin.read()))
    return scale * data[:, 0]

def run_CNN(data_train, data_test, lr):
    return np.full(len(data_test), lr * len(data_train), dtype=np.float32)
"""

SAND = """
class SAND:
    def __init__(self, pattern_length, subsequence_length, k=6):
        self.k, self.subsequence_length = k, subsequence_length

    def fit(self, X, online=False, alpha=None, init_length=None, batch_size=0, overlaping_rate=10):
        ends = len(X) - self.subsequence_length
        now, size, scored = 0, init_length if online else len(X), 0
        while now < ends:
            subsequences = len(range(now, min(now + size, ends), overlaping_rate))
            assert subsequences >= self.k, f"{subsequences} subsequences from {now}"
            now, size = now + size, batch_size
        assert not online or init_length + batch_size <= now
        self.decision_scores_ = X
"""

FILES = {
    "__init__.py": "",
    "HP_list.py": HP_LIST,
    "model_wrapper.py": MODEL_WRAPPER,
    "models/__init__.py": "",
    "models/PCA.py": "",
    "models/CNN.py": "",
    "models/SAND.py": SAND,
    "utils/__init__.py": "",
    "utils/slidingWindows.py": "def find_length_rank(data, rank): return int(data[0, 0])",  # the test says the period
}
VALUES = np.arange(1.0, 21.0).reshape(-1, 1)


def write_packages(folder):
    """Put the made-up TSB_AD into a folder."""
    for name, text in FILES.items():
        path = folder / "TSB_AD" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packages")
    write_packages(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        with BaselineWorker(sys.executable) as worker:
            yield worker


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Packages that a test may change, for a worker of its own."""
    write_packages(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def behave(worker, behaviour, timeout=None):
    return worker.scores("sub-pca", VALUES, 5, timeout, hyper_parameters={"behaviour": behaviour})


def test_scores_come_back_whatever_is_printed(worker):
    for _ in range(2):
        assert worker.scores("sub-pca", VALUES, 5) == pytest.approx(2 * VALUES[:, 0])
    assert worker.settings == {"scale": 2}
    assert 0 < worker.seconds < 5


def test_single_hyper_parameters_can_be_changed(worker):
    scores = worker.scores("sub-pca", VALUES, 5, hyper_parameters={"scale": -1})
    assert scores == pytest.approx(-VALUES[:, 0])
    assert worker.settings == {"scale": -1}


def test_trained_methods_get_the_calibration_part_and_the_settings_for_their_features(worker):
    assert worker.scores("cnn", VALUES, 5) == pytest.approx(np.full(20, 5.0))
    several = worker.scores("cnn", np.ones((20, 3)), 5)
    assert several.dtype == np.float64
    assert several == pytest.approx(np.full(20, 35.0))


def test_the_same_request_has_the_same_answer(worker):
    first = behave(worker, "random")
    worker.scores("sub-pca", VALUES, 5)
    assert np.array_equal(behave(worker, "random"), first)


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("raise", "sub-pca failed: ValueError: no components today"),
        ("exit", "sub-pca failed: SystemExit: had enough"),
        ("crash", "sub-pca ended its process: exit status 3, last words: the lights go out"),
        ("nan", "sub-pca gave 4 of 20 scores that are no numbers"),
        ("short", r"sub-pca gave scores of shape \(19,\) for 20 observations"),
        ("import", "sub-pca failed: ModuleNotFoundError"),  # the folder of the worker is no place to import from
    ],
)
def test_failures_say_why_and_the_next_request_works(worker, behaviour, reason):
    with pytest.raises(BaselineError, match=reason):
        behave(worker, behaviour)
    assert behave(worker, "scores") == pytest.approx(2 * VALUES[:, 0])


def test_one_that_hangs_is_stopped(worker):
    with pytest.raises(BaselineError, match=r"sub-pca gave no scores within 0\.3 seconds and was stopped"):
        behave(worker, "hang", timeout=0.3)
    assert behave(worker, "scores") == pytest.approx(2 * VALUES[:, 0])


def test_the_worker_ends_when_nobody_is_left_to_ask(packages):
    np.save(packages / "values.npy", VALUES)
    request = {"method": "sub-pca", "values": str(packages / "values.npy"), "calibration": 5, "out": ""}
    request["hyper_parameters"] = {"behaviour": "hang"}
    process = subprocess.run(
        [sys.executable, baseline_worker.__file__],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert process.returncode == 0
    assert process.stdout in ("", '{"ok": true}\n')  # the greeting, if there was time for it


def test_there_is_one_thread_unless_told_otherwise(packages, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "4")
    with BaselineWorker(sys.executable) as fresh:
        assert behave(fresh, "threads") == pytest.approx(np.full(20, 1.4))


def test_a_method_that_reads_stdin_takes_no_requests(worker):
    assert behave(worker, "read", timeout=20) == pytest.approx(np.zeros(20))


def test_one_that_was_ended_from_outside_is_replaced(worker):
    worker._process.kill()
    worker._process.wait()
    with pytest.raises(BaselineError, match="sub-pca ended its process: exit status"):
        behave(worker, "scores")
    assert behave(worker, "scores") == pytest.approx(2 * VALUES[:, 0])


@pytest.mark.parametrize(("length", "calibration"), [(1073, 500), (2430, 530), (4032, 1007), (10000, 100)])
@pytest.mark.parametrize("period", [6, 12, 125])
def test_every_batch_of_shapes_has_enough_subsequences(packages, monkeypatch, length, calibration, period):
    monkeypatch.syspath_prepend(str(packages))
    values = np.full((length, 1), float(period))
    for online in (None, calibration):
        scores, settings = baseline_worker.shape_scores(values, online, periodicity=1)
        assert len(scores) == length
        assert settings["period"] == period
        assert settings["overlaping_rate"] <= int(1.5 * period)
    for name in [name for name in sys.modules if name.startswith("TSB_AD")]:
        monkeypatch.delitem(sys.modules, name)


def test_batches_stay_as_tsb_ad_has_them_where_they_can():
    assert baseline_worker.batch_lengths(4007, 1007, 500, least=46) == (1007, 500, 500)
    assert baseline_worker.batch_lengths(4057, 1007, 500, least=46) == (1007, 500, 50)
    assert baseline_worker.batch_lengths(4051, 1007, 500, least=46) == (1007, 508, 504)  # else the last had 44
    assert baseline_worker.batch_lengths(500, 500, 625, least=936) == (250, 250, 250)  # else nothing after the first


def test_signals_too_short_for_shapes_are_named(worker):
    for method in ("kshape", "sand"):
        with pytest.raises(BaselineError, match=f"{method} failed: ValueError: 403 observations are too few"):
            worker.scores(method, np.full((403, 1), 100.0), 100)


def test_moment_says_what_it_lacks(worker):
    with pytest.raises(BaselineError, match="moment failed: RuntimeError: MOMENT needs the package momentfm"):
        worker.scores("moment", VALUES, 5)


def test_moment_downloads_nothing(packages):
    (packages / "momentfm.py").write_text("")
    (packages / "huggingface_hub.py").write_text(
        "import os\nassert os.environ['HF_HUB_OFFLINE'] == '1'\ndef try_to_load_from_cache(*file): return None"
    )
    with BaselineWorker(sys.executable) as fresh, pytest.raises(BaselineError, match="are not in the cache of Hugging"):
        fresh.scores("moment", VALUES, 5)


def test_a_python_without_tsb_ad_is_refused_at_once(packages):
    (packages / "TSB_AD" / "__init__.py").write_text("raise ImportError('no statsmodels')")
    with pytest.raises(BaselineError, match=r"cannot load TSB_AD: ImportError: no statsmodels.*pip install") as no:
        BaselineWorker(sys.executable).__enter__()
    assert sys.executable in str(no.value)


def test_what_is_no_python_is_refused(tmp_path):
    with pytest.raises(BaselineError, match=r"cannot start the Python '.*nothing'.*pip install TSB-AD"):
        BaselineWorker(str(tmp_path / "nothing")).__enter__()


@pytest.mark.parametrize(
    ("method", "values", "calibration", "error", "reason"),
    [
        ("lof", VALUES, 5, ValueError, "method must be one of 'kshape'.*got 'lof'"),
        ("poly", VALUES[:, 0], 5, ValueError, r"values must have the shape \[observations, features\], got \(20,\)"),
        ("cnn", VALUES, 21, ValueError, "calibration must be an integer from 0 to 20, got 21"),
        ("poly", np.ones((9, 2)), 5, BaselineError, "poly takes signals of one feature, got 2"),
        ("cnn", [[1.0], [np.nan]], 1, BaselineError, "cnn takes no missing values, got 1 of 2"),
    ],
)
def test_requests_that_cannot_be_met_are_refused(method, values, calibration, error, reason):
    with pytest.raises(error, match=reason):
        BaselineWorker("python").scores(method, values, calibration)


def test_worker_and_table_know_the_same_methods():
    trained = {name: method.trained for name, method in baseline_worker.METHODS.items()}
    assert trained == {name: baseline.trained for name, baseline in BASELINES.items()}
    assert [name for name, baseline in BASELINES.items() if not baseline.univariate] == ["cnn", "usad", "omnianomaly"]


def test_the_worker_imports_nothing_but_numpy():
    tree = ast.parse(Path(baseline_worker.__file__).read_text(), feature_version=(3, 9))
    imported = [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    imported += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {name.split(".")[0] for name in imported} - sys.stdlib_module_names == {"numpy"}


def test_min_max_turns_scores_round():
    assert min_max_pseudo_p([3.0, 1.0, 2.0, 5.0]) == pytest.approx([0.5, 1.0, 0.75, 0.0])
    assert min_max_pseudo_p([4.0, 4.0]) == pytest.approx([1.0, 1.0])
    assert min_max_pseudo_p([]).shape == (0,)
    with pytest.raises(ValueError, match="scores must be finite numbers, got 2 of 3 that are not"):
        min_max_pseudo_p([np.nan, 1.0, np.inf])


def test_the_real_tsb_ad_finds_a_spike(monkeypatch):
    python = os.environ.get("TOCSIN_TSB_AD_PYTHON")
    if not python:
        pytest.skip("TOCSIN_TSB_AD_PYTHON does not name a Python that has TSB-AD")
    monkeypatch.delenv("PYTHONPATH", raising=False)  # the made-up one may still be on it
    values = np.sin(2 * np.pi * np.arange(1000) / 24) + 0.05 * np.random.default_rng(0).normal(size=1000)
    values[700:706] += 3
    with BaselineWorker(python) as worker:
        for method in ("poly", "sub-pca", "sub-knn"):
            scores = worker.scores(method, values.reshape(-1, 1), 500, timeout=120)
            assert 650 < np.argmax(scores) < 760, method
