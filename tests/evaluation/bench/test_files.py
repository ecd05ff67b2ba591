"""Reading labelled files, and refusing those that cannot take part."""

import numpy as np
import pytest

from tests.evaluation.bench.making import CALIBRATION, fault_labels, name_of, noise, write_file, write_text
from tocsin_bench.files import UnusableFileError, dataset_of, feature_count, find_files, read_file

NAME = "007_SHORT_id_7_tr_2_1st_3"


def test_everything_is_read(tmp_path):
    values = noise(features=3)
    file = read_file(write_file(tmp_path, name_of(4, "OPEN"), values))
    assert (file.name, file.dataset, file.calibration) == (name_of(4, "OPEN"), "OPEN", CALIBRATION)
    assert np.array_equal(file.values, values)
    assert file.labels.dtype == np.bool_
    assert np.array_equal(file.labels, fault_labels() == 1)
    assert file.problem == ""


def test_missing_and_infinite_values(tmp_path):
    text = "a,b,Label\n1,,0\n , 2e3 ,0\nnan,-inf,1\n4,5,0\n"
    expected = [[1, np.nan], [np.nan, 2000], [np.nan, np.nan], [4, 5]]
    assert np.array_equal(read_file(write_text(tmp_path, text, NAME)).values, expected, equal_nan=True)


def test_marks_of_other_systems(tmp_path):
    path = write_text(tmp_path, "\ufeffa,Label\r\n1,0\r\n2,0.0\r\n3,1\r\n", NAME)
    file = read_file(path)
    assert file.values[:, 0].tolist() == [1, 2, 3]
    assert file.labels.tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        ("\n", r"its last column must be named Label, after at least one other, got \[\]"),
        ("\n1,0\n2,0\n3,1\n", r"named Label.*got \[\]"),
        ("a,b\n1,0\n2,0\n3,1\n", r"named Label.*got \['a', 'b'\]"),
        ("Label,a\n0,1\n0,2\n1,3\n", r"named Label.*got \['Label', 'a'\]"),
        ("Label\n0\n0\n1\n", r"after at least one other, got \['Label'\]"),
        ("a,Label\n1,0\n2,2\n3,1\n", "its labels must be 0 or 1, got 2"),
        ("a,Label\n1,0\n2,\n3,1\n", "its labels must be 0 or 1, got nan"),
        ("a,Label\n", "tr_2, must hold something of its 0 observations and leave something"),
        ("a,Label\n1,0\n2,0\n", "tr_2, must hold something of its 2 observations and leave something"),
        ("a,Label\n1,0\n2\n3,1\n", "line 3 must have 2 cells, as its header, got 1"),
        ("a,Label\n1,0\n2,0\n3,1,9\n", "line 4 must have 2 cells, as its header, got 3"),
        ("a,Label\n1,0\n2,0\nlow,1\n", "line 4 must hold numbers: .*'low'"),
    ],
)
def test_why_a_file_cannot_take_part(tmp_path, text, reason):
    with pytest.raises(UnusableFileError, match=reason):
        read_file(write_text(tmp_path, text, NAME))


def test_a_name_must_say_how_much_is_for_calibration(tmp_path):
    with pytest.raises(UnusableFileError, match=r"its name must say .*, as in \.\.\._tr_500_"):
        read_file(write_file(tmp_path, "001_TINY_track_100"))
    with pytest.raises(UnusableFileError, match="tr_0, must hold something of its 180"):
        read_file(write_file(tmp_path, "001_TINY_tr_0"))
    assert read_file(write_file(tmp_path, "001_TINY_tr_179")).calibration == 179


def test_what_is_no_text(tmp_path):
    path = tmp_path / f"{NAME}.csv"
    path.write_bytes(b"a,Label\n\xff\xfe,0\n")
    with pytest.raises(UnusableFileError, match=r"it cannot be read: .*0xff"):
        read_file(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(UnusableFileError, match=r"it cannot be read: .*directory"):
        read_file(path)


@pytest.mark.parametrize(("label", "problem"), [(0, "nothing is labelled an anomaly"), (1, "everything is labelled")])
def test_what_metrics_cannot_tell(tmp_path, label, problem):
    labels = np.full(180, 1 - label)
    labels[CALIBRATION:] = label
    file = read_file(write_file(tmp_path, labels=labels))
    assert file.problem.startswith(problem)
    labels[-1] = 1 - label
    assert read_file(write_file(tmp_path, labels=labels)).problem == ""


def test_features_as_far_as_can_be_told(tmp_path):
    assert feature_count(write_text(tmp_path, "a,b,c,Label\n1\n")) == 3
    assert feature_count(write_text(tmp_path, "a,Label\n1\n")) == 1
    assert feature_count(write_text(tmp_path, "")) == 1
    assert feature_count(tmp_path / "gone.csv") == 1


def test_data_sets():
    assert dataset_of("140_MSL_id_1_Sensor_tr_530_1st_630") == "MSL"
    assert dataset_of("alone") == "alone"


@pytest.fixture
def folder(tmp_path):
    for name in ("003_B_tr_5", "001_A_tr_5", "002_A_tr_5", "004_A_tr_5"):
        (tmp_path / f"{name}.csv").touch()
    (tmp_path / "notes.txt").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("datasets", "limit", "numbers"),
    [
        ((), None, ["001", "002", "003", "004"]),
        ((), 2, ["001", "002", "003"]),
        (("A",), None, ["001", "002", "004"]),
        (("A", "B"), 1, ["001", "003"]),
    ],
)
def test_files_of_a_folder(folder, datasets, limit, numbers):
    assert [path.name[:3] for path in find_files([folder], datasets, limit)] == numbers


def test_folders_without_what_is_looked_for(folder, tmp_path):
    with pytest.raises(ValueError, match="data sets must be among A, B, got C, D"):
        find_files([folder], ["D", "A", "C"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="empty must hold CSV files, found none"):
        find_files([folder, tmp_path / "empty"])
    for wrong in ("gone", "notes.txt"):
        with pytest.raises(FileNotFoundError, match=f"{wrong} must be a folder of CSV files"):
            find_files([tmp_path / wrong])


@pytest.fixture
def second(tmp_path_factory):
    second = tmp_path_factory.mktemp("second")
    for name in ("000_A_tr_5", "005_C_tr_5"):
        (second / f"{name}.csv").touch()
    return second


@pytest.mark.parametrize(
    ("datasets", "limit", "numbers"),
    [
        ((), None, ["000", "001", "002", "003", "004", "005"]),
        ((), 2, ["000", "001", "003", "005"]),
        (("A", "C"), 1, ["000", "005"]),
    ],
)
def test_files_of_two_folders(folder, second, datasets, limit, numbers):
    for folders in ([folder, second], [second, folder]):
        assert [path.name[:3] for path in find_files(folders, datasets, limit)] == numbers


def test_names_are_distinct_over_all_folders(folder, second):
    (second / "002_A_tr_5.csv").touch()
    with pytest.raises(ValueError, match="file names must be distinct, got ") as refused:
        find_files([folder, second])
    assert str(folder / "002_A_tr_5.csv") in str(refused.value)
    assert str(second / "002_A_tr_5.csv") in str(refused.value)
    with pytest.raises(ValueError, match="distinct"):
        find_files([folder, folder])
