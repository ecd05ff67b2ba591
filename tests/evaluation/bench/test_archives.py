"""Files as NAB and the UCR anomaly archive publish them."""

import json
from datetime import datetime, timedelta

import numpy as np
import pytest

from tests.evaluation.bench.making import name_of, noise, write_file
from tocsin_bench.archives import nab_files, nab_windows, read_nab, read_ucr, ucr_files
from tocsin_bench.files import UnusableFileError
from tocsin_bench.paper import paper_value

START = datetime(2014, 1, 1)


def time_of(row):
    return str(START + timedelta(minutes=5 * row))


def write_nab(folder, windows, labels="windows.json", data=""):
    """A file of NAB for each name, with windows from row to row."""
    for number, name in enumerate(windows):
        path = folder / data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [f"{time_of(row)},{value}" for row, value in enumerate(noise(seed=number)[:, 0])]
        path.write_text("\n".join(["timestamp,value", *rows]) + "\n")
    (folder / labels).parent.mkdir(parents=True, exist_ok=True)
    times = {name: [[f"{time_of(row)}.000000" for row in pair] for pair in pairs] for name, pairs in windows.items()}
    (folder / labels).write_text(json.dumps(times))
    return folder


def test_a_folder_with_files_of_nab(tmp_path):
    found = nab_files(write_nab(tmp_path, {"a.csv": [(100, 110), (111, 120)], "b.csv": []}))
    a, b = found
    file = read_nab(a, found)
    assert (file.name, file.dataset, file.calibration) == ("a", "NAB (Numenta's files)", 27)
    assert paper_value(file.dataset, "embedded-52", "w1-acas", "vus_pr") is None  # the paper's NAB is TSB-AD's
    assert np.flatnonzero(file.labels).tolist() == list(range(100, 121))
    assert nab_windows(a, found).tolist() == [[100, 110], [111, 120]]  # neighbours stay two
    assert not read_nab(b, found).labels.any()
    assert nab_windows(b, found).shape == (0, 2)


def test_a_clone_of_nab(tmp_path):
    write_nab(tmp_path, {"real/a.csv": [], "art/b.csv": []}, "labels/combined_windows.json", "data")
    assert [path.name for path in nab_files(tmp_path)] == ["b.csv", "a.csv"]
    (tmp_path / "data" / "real" / "a.csv").unlink()  # a part of it
    assert [path.name for path in nab_files(tmp_path)] == ["b.csv"]


def test_what_is_no_nab(tmp_path):
    with pytest.raises(FileNotFoundError, match="labelled windows"):
        nab_files(tmp_path)
    (tmp_path / "windows.json").write_text("{")
    with pytest.raises(ValueError, match="must be JSON"):
        nab_files(tmp_path)
    (tmp_path / "windows.json").write_text('{"a.csv": []}')
    with pytest.raises(FileNotFoundError, match=r"such as a\.csv"):
        nab_files(tmp_path)
    (tmp_path / "a.csv").write_text("time,value\n1,2\n")
    with pytest.raises(UnusableFileError, match="timestamp and value"):
        read_nab(tmp_path / "a.csv", nab_files(tmp_path))
    write_nab(tmp_path, {"a.csv": [(5, 999)]})
    with pytest.raises(UnusableFileError, match="begin and end with observations"):
        read_nab(tmp_path / "a.csv", nab_files(tmp_path))


def test_the_archives_own_names_count_from_1(tmp_path):
    path = tmp_path / "004_UCR_Anomaly_two_words_100_151_156.txt"
    path.write_text("\n".join(map(str, noise()[:, 0])))
    file = read_ucr(path)
    assert (file.name, file.dataset, file.calibration) == (path.stem, "UCR", 100)
    assert np.flatnonzero(file.labels).tolist() == list(range(150, 156))
    np.testing.assert_allclose(file.values, noise())


def test_both_kinds_of_files_and_no_others(tmp_path):
    write_file(tmp_path, name_of(7, "UCR"))
    write_file(tmp_path, name_of(8, "NAB"))
    (tmp_path / "001_UCR_Anomaly_a_100_151_156.txt").write_text("1 2")
    (tmp_path / "notes.txt").write_text("none")
    found = ucr_files([tmp_path])
    assert [path.name[:7] for path in found] == ["001_UCR", "007_UCR"]
    assert read_ucr(found[1]).labels.sum() == 6
    with pytest.raises(UnusableFileError, match="places among its 2 values"):
        read_ucr(found[0])
    found[0].write_text("1 two")
    with pytest.raises(UnusableFileError, match="numbers only"):
        read_ucr(found[0])


def test_no_files_of_the_archive(tmp_path):
    with pytest.raises(FileNotFoundError, match="found none"):
        ucr_files([tmp_path])
    with pytest.raises(FileNotFoundError, match="must be a folder"):
        ucr_files([tmp_path / "nowhere"])
