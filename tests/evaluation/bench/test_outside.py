import numpy as np
import pytest

from tocsin_bench.outside import column_of, read_scores


def given(folder, text, stem="001_NAB"):
    (folder / f"{stem}.csv").write_text(text, encoding="utf-8")


def test_scores_are_turned_round(tmp_path):
    given(tmp_path, "time,score\n1,10\n2,30\n3,20\n")
    assert read_scores(tmp_path, "001_NAB", 3) == pytest.approx([1.0, 0.0, 0.5])
    assert column_of(tmp_path, "001_NAB") == "score"


def test_p_is_used_as_it_is(tmp_path):
    given(tmp_path, "\ufeffp\n0.25\n0\n1\n1e-3\n")
    assert read_scores(tmp_path, "001_NAB", 4) == pytest.approx([0.25, 0.0, 1.0, 0.001])
    assert column_of(tmp_path, "001_NAB") == "p"


def test_a_p_may_be_missing(tmp_path):
    given(tmp_path, "p,note\n,warm-up\n0.5,\n")
    assert np.array_equal(read_scores(tmp_path, "001_NAB", 2), [np.nan, 0.5], equal_nan=True)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("p\n0.5\n1.5\n", r"001_NAB\.csv, line 3, column 'p': must be a number from 0 to 1, got '1\.5'"),
        ("p\n-0.1\n0\n", "line 2, column 'p': must be a number from 0 to 1, got '-0.1'"),
        ("score\n1\nhigh\n", r"001_NAB\.csv, line 3, column 'score': must be a number, got 'high'"),
        ("time,score\n1,2\n2,\n", r"001_NAB\.csv, column 'score': scores must be finite numbers, got 1 of 2"),
        ("time,score\n1,2\n2\n", "column 'score': scores must be finite numbers, got 1 of 2"),
        ("score\n1\n2\n3\n", r"001_NAB\.csv must have 2 rows, one for each observation of 001_NAB, got 3"),
        ("value\n1\n2\n", r"001_NAB\.csv must have a column \"score\".* or \"p\".*got the columns \['value'\]"),
        ("score,p\n1,1\n2,1\n", r"only one such column, got the columns \['score', 'p'\]"),
        ("p,p\n1,1\n1,1\n", r"only one such column, got the columns \['p', 'p'\]"),
        ("", r"got the columns \[\]"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path, text, reason):
    given(tmp_path, text)
    with pytest.raises(ValueError, match=reason):
        read_scores(tmp_path, "001_NAB", 2)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*002_NAB\.csv; accepted is a column \"score\""):
        read_scores(tmp_path, "002_NAB", 3)
