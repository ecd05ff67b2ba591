"""Tiny files in the format of TSB-AD, and scores for them from elsewhere."""

import numpy as np

CALIBRATION = 100
LENGTH = 180
FAULT = slice(150, 156)


def name_of(number=1, dataset="TINY", calibration=CALIBRATION):
    return f"{number:03d}_{dataset}_id_{number}_tr_{calibration}_1st_{FAULT.start}"


def noise(length=LENGTH, features=1, seed=0, before=0):
    """White noise around 20 with a fault that nobody overlooks, `before` observations later than usual."""
    values = 20 + np.random.default_rng(seed).normal(size=(before + length, features))
    values[before:][FAULT] += 15
    return values


def fault_labels(length=LENGTH):
    labels = np.zeros(length, dtype=int)
    labels[length - LENGTH :][FAULT] = 1
    return labels


def write_file(folder, name=None, values=None, labels=None):
    """Write a file; NaN becomes an empty cell."""
    values = noise() if values is None else np.asarray(values, dtype=float).reshape(len(values), -1)
    labels = fault_labels(len(values)) if labels is None else labels
    header = [*(f"feature {number}" for number in range(values.shape[1])), "Label"]
    rows = [
        [*("" if np.isnan(value) else repr(float(value)) for value in row), str(label)]
        for row, label in zip(values, labels, strict=True)
    ]
    return write_text(folder, "\n".join(map(",".join, [header, *rows])) + "\n", name)


def make_folder(path):
    """Two files with one feature and one with two, of another data set."""
    path.mkdir()
    write_file(path, name_of(1), noise(seed=1))
    write_file(path, name_of(2), noise(seed=2))
    write_file(path, name_of(3, "MANY"), noise(features=2))
    return path


def write_text(folder, text, name=None):
    """Write a file with these words in it, and nothing else."""
    path = folder / f"{name or name_of()}.csv"
    path.write_text(text, encoding="utf-8")
    return path


def write_all_normal(folder, name):
    return write_file(folder, name, labels=np.zeros(LENGTH, dtype=int))
