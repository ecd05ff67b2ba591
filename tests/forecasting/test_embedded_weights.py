"""Files of weights: what is refused, and that the error says why."""

import numpy as np
import pytest

from tests.forecasting.embedded_oracle import random_arrays
from tocsin.arrays import write_arrays
from tocsin.forecasting import EmbeddedForecaster
from tocsin.forecasting.embedded.weights import SHIPPED, WeightsError, load_weights


def written(path, **changes):
    """A file with some arrays changed, or without them where the change is None."""
    arrays = random_arrays() | {name.replace("__", "."): array for name, array in changes.items()}
    write_arrays({name: array for name, array in arrays.items() if array is not None}, path)
    return path


def not_finite(name):
    array = random_arrays()[name].copy()
    array.flat[-1] = np.inf
    return array


BAD = {
    "no format": ({"format": None}, "format is missing"),
    "another format": ({"format": np.array(1)}, "format must be 3, got 1"),
    "odd format": ({"format": np.array(1.0)}, "format must be a whole number, got array(1.)"),
    "no shape": ({"shape__width": None}, "shape.width is missing"),
    "another patch": (
        {"shape__patch": np.array(8)},
        "patch, recent and horizon must be 16, 32 and 32, got (8, 32, 32)",
    ),
    "no heads": (
        {"shape__heads": np.array(0)},
        "width, heads, groups, hidden and patch_hidden must go together, got NetworkShape(",
    ),
    "no groups": (
        {"shape__groups": np.array(0)},
        "width, heads, groups, hidden and patch_hidden must go together, got NetworkShape(",
    ),
    "heads and groups": (
        {"shape__groups": np.array(3)},
        "width, heads, groups, hidden and patch_hidden must go together, got NetworkShape(",
    ),
    "no layers": (
        {"shape__layers": np.array(0)},
        "width, heads, groups, hidden and patch_hidden must go together, got NetworkShape(",
    ),
    "odd width": (
        {"shape__width": np.array(65)},
        "width, heads, groups, hidden and patch_hidden must go together, got NetworkShape(",
    ),
    "no layer of patches": (
        {"shape__patch_hidden": np.array(0)},
        "width, heads, groups, hidden and patch_hidden must go together, got NetworkShape(",
    ),
    "more layers": ({"shape__layers": np.array(4)}, "blocks.3.attention_norm.weight is missing"),
    "no sharpness": ({"blocks__1__sharpness": None}, "blocks.1.sharpness is missing"),
    "too few": ({"head_in__weight": None}, "head_in.weight is missing"),
    "wrong shape": (
        {"head_norm__weight": np.ones(7, dtype=np.float16)},
        "head_norm.weight must be float16 of shape (64,), got float16 of shape (7,)",
    ),
    "wrong type": (
        {"head_norm__weight": np.ones(64)},
        "head_norm.weight must be float16 of shape (64,), got float64 of shape (64,)",
    ),
    "not finite": (
        {"blocks__2__mix__weight": not_finite("blocks.2.mix.weight")},
        "blocks.2.mix.weight must hold finite numbers",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "message"), BAD.values(), ids=BAD.keys())
def test_what_is_wrong_with_a_file_is_said(tmp_path, changes, message):
    path = written(tmp_path / "weights.npz", **changes)
    forecaster = EmbeddedForecaster(weights=path)
    for use in (lambda: forecaster.forecast([[1.0, 2.0]], 1), lambda: forecaster.open(1, 1)):
        with pytest.raises(WeightsError) as caught:
            use()
        assert str(caught.value).startswith(
            f"weights={str(path)!r} are not what this version of tocsin needs: {message}"
        )


def test_a_missing_or_damaged_file_is_named(tmp_path):
    path = tmp_path / "weights.npz"
    with pytest.raises(WeightsError, match=f"^weights='{path}' could not be read: .*No such file"):
        EmbeddedForecaster(weights=str(path)).open(1, 1)
    written(path)
    whole = path.read_bytes()
    for damaged in (b"", b"no archive", whole[: len(whole) // 2], whole[:-1], whole[:5000] + b"x" + whole[5001:]):
        path.write_bytes(damaged)
        with pytest.raises(WeightsError, match=f"^weights='{path}' could not be read: "):
            EmbeddedForecaster(weights=path).open(1, 1)
    with pytest.raises(WeightsError, match=f"^weights='{tmp_path}' could not be read: .*[Dd]irectory"):
        EmbeddedForecaster(weights=tmp_path).open(1, 1)
    path.write_bytes(whole)
    EmbeddedForecaster(weights=path).open(1, 1)


def test_nothing_is_read_before_it_is_needed(tmp_path):
    forecaster = EmbeddedForecaster(weights=tmp_path / "weights.npz")
    assert forecaster.longest_horizon == 32
    written(tmp_path / "weights.npz")
    assert forecaster.levels == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    forecaster.open(1, 1)


def test_a_file_is_read_once(tmp_path):
    path = written(tmp_path / "weights.npz")
    weights = load_weights(path)
    path.unlink()
    assert load_weights(str(path)) is weights


def test_the_shipped_file_is_small():
    assert SHIPPED.stat().st_size <= 1_300_000
