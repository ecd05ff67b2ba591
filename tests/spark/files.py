"""Tables as files that a stream reads one by one."""

import os

import numpy as np


def write_files(frame, folder, count, seed=0):
    """Split every signal at random places over `count` files, rows in any order; a stream takes them in theirs."""
    rng = np.random.default_rng(seed)
    number = np.zeros(len(frame), dtype=np.int64)
    for rows in frame.reset_index(drop=True).groupby("id").groups.values():
        cuts = np.sort(rng.integers(0, len(rows) + 1, size=count - 1))
        number[rows] = np.searchsorted(cuts, np.arange(len(rows)), side="right")
    for one in range(count):
        part = frame[number == one].sample(frac=1, random_state=one)
        write_file(part, folder, one)


def write_file(frame, folder, number):
    """One file, younger than those before it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number:04}.parquet"
    frame.astype({"time": "datetime64[us, UTC]"}).to_parquet(path, index=False)
    os.utime(path, (1_600_000_000 + number,) * 2)
