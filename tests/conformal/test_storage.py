"""Scorers in files."""

import pickle

import numpy as np
import pytest

from tocsin.conformal import W1ACAS, SlidingWindow, load_scorer, save_scorer


def test_path_is_taken_as_it_is(tmp_path):
    scorer = SlidingWindow(2, window=5)
    scorer.run([[1.0, 2.0], [3.0, 4.0]])
    save_scorer(scorer, tmp_path / "state.tocsin")
    assert [path.name for path in tmp_path.iterdir()] == ["state.tocsin"]
    restored = load_scorer(str(tmp_path / "state.tocsin"))
    np.testing.assert_array_equal(restored.run([[2.0, 2.0]]), scorer.run([[2.0, 2.0]]))


def test_threads_are_chosen_anew(tmp_path):
    save_scorer(W1ACAS(4, threads=4), tmp_path / "s")
    assert load_scorer(tmp_path / "s").threads == 1
    assert load_scorer(tmp_path / "s", threads=2).threads == 2


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04 cut short", pickle.dumps({"scorer": "W1ACAS"})])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"file must hold a scorer saved by tocsin, got .*other"):
        load_scorer(path)


def test_pickled_arrays_inside_npz_are_refused(tmp_path):
    state = SlidingWindow(window=3).state()
    with (tmp_path / "evil").open("wb") as file:
        np.savez(file, **{**state, "scores": np.array([{"a": 1}], dtype=object)})
    with pytest.raises(ValueError, match="file must hold a scorer"):
        load_scorer(tmp_path / "evil")


def test_npz_of_something_else_is_refused(tmp_path):
    with (tmp_path / "other.npz").open("wb") as file:
        np.savez(file, x=np.zeros(3))
    with pytest.raises(ValueError, match=r"file must hold one of W1ACAS.*got 'None'"):
        load_scorer(tmp_path / "other.npz")


def test_cut_short_file_is_refused(tmp_path):
    path = tmp_path / "s"
    save_scorer(W1ACAS(2), path)
    content = path.read_bytes()
    for end in (10, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:end])
        with pytest.raises(ValueError, match="file must hold a scorer"):
            load_scorer(path)


def test_flipped_bits_are_noticed(tmp_path):
    path = tmp_path / "s"
    save_scorer(W1ACAS(2), path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(ValueError, match="file must hold a scorer"):
        load_scorer(path)


@pytest.mark.slow
def test_no_damage_escapes_as_another_exception(tmp_path):
    path = tmp_path / "s"
    save_scorer(SlidingWindow(2, window=4), path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    outcomes = set()
    for _ in range(500):
        damaged = bytearray(content)
        for place in rng.integers(0, len(content), size=rng.integers(1, 4)):
            damaged[place] = rng.integers(0, 256)
        path.write_bytes(damaged)
        try:
            outcomes.add(type(load_scorer(path)).__name__)
        except ValueError:
            outcomes.add("refused")
    assert outcomes == {"refused", "SlidingWindow"}


def test_a_failed_save_leaves_the_last_good_file(tmp_path, monkeypatch):
    path = tmp_path / "s"
    save_scorer(SlidingWindow(2, window=4), path)
    content = path.read_bytes()

    def disk_full(opened, **arrays):
        opened.write(b"half a file")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", disk_full)
    with pytest.raises(OSError, match="No space left"):
        save_scorer(SlidingWindow(3, window=4), path)
    with pytest.raises(AttributeError):
        save_scorer("not a scorer", path)
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["s"]


def test_missing_file_is_the_ordinary_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_scorer(tmp_path / "nowhere")
