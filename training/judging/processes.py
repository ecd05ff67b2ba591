"""Work on all cores, with a bar that shows how far it is."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from tocsin.cli.application import progress

T = TypeVar("T")

# Processes that each started threads for all cores would only be in each other's way.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def in_processes(tasks: Sequence[Callable[[], T]], jobs: int, doing: str) -> list[T]:
    """The results of all tasks, in their order; a single job is done in this process."""
    with progress() as bar:
        return list(bar.track(_results(tasks, jobs), total=len(tasks), description=doing))


def _results(tasks: Sequence[Callable[[], T]], jobs: int) -> Iterator[T]:
    if jobs == 1:
        yield from (task() for task in tasks)
        return
    # Not forked: a fork of a process with threads (those of the progress bar) may stand still for ever.
    with _one_thread_each(), ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(_call, tasks)


def _call(task: Callable[[], T]) -> T:
    return task()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes started meanwhile use one thread each for their arithmetic."""
    before = {name: os.environ[name] for name in _THREADS if name in os.environ}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name in _THREADS:
            del os.environ[name]
        os.environ.update(before)
