"""The network as it is trained, and as the package runs it: one and the same."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from training import examples
from training.export import export
from training.model import LEVELS, Network, Shape

from tests.forecasting.embedded_oracle import Oracle, centre_and_scale
from tocsin.arrays import read_arrays
from tocsin.forecasting import EmbeddedForecaster
from tocsin.forecasting.embedded import weights as runtime

SMALL = Shape(width=96, layers=3, heads=6, groups=2, hidden=128, patch_hidden=64)


def random_network(shape, seed):
    """As it is initialised, but with noise on every parameter, so that none of them is 0 or does nothing."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = Network(shape)
        with torch.no_grad():
            for parameter in network.parameters():
                size = 0.1 if parameter.ndim == 1 else 0.3 / math.sqrt(parameter.shape[1])
                parameter.add_(size * torch.randn_like(parameter))
    return network.eval()


@pytest.fixture(scope="module", params=[SMALL, Shape()], ids=["small", "real"])
def exported(request, tmp_path_factory):
    """A network whose weights are exact in half precision, and its file."""
    folder = tmp_path_factory.mktemp("exported")
    network = random_network(request.param, 0)
    network.load_state_dict({name: tensor.half().float() for name, tensor in network.state_dict().items()})
    torch.save({"shape": network.shape.as_dict(), "weights": network.state_dict()}, folder / "checkpoint.pt")
    export(folder / "checkpoint.pt", folder / "weights.npz")
    return network, folder / "weights.npz"


def signal(length, seed=0):
    rng = np.random.default_rng(seed)
    values = 5 * np.sin(np.arange(length) * 2 * np.pi / 30) + np.cumsum(rng.normal(size=length))
    values[rng.random(length) < 0.05] = np.nan
    values[length // 3 : length // 3 + 40] = np.nan
    values[0] = 0.0
    return values


def standard(values):
    """In the network's units, 0 where missing, and what is known."""
    known = ~np.isnan(values)
    centre, scale = centre_and_scale(values)
    relative = (np.where(known, values, centre) - centre) / scale
    return np.clip(np.arcsinh(relative), -12, 12).astype(np.float32), known.astype(np.float32)


def of_network(network, values, lengths):
    """Its quantiles `(lengths, horizon, levels)`, in its units."""
    numbers, known = standard(values)
    missing = -len(values) % 16
    padded = [torch.from_numpy(np.pad(array, (0, missing)))[np.newaxis] for array in (numbers, known)]
    with torch.no_grad():
        return network(*padded, torch.tensor([lengths]))[0].numpy()


def test_the_file_holds_the_network(exported):
    network, path = exported
    arrays = read_arrays(path, "weights")
    assert path.stat().st_size < 1_300_000
    assert int(arrays["format"]) == runtime.FORMAT
    for name, size in network.shape.as_dict().items():
        assert int(arrays.pop(f"shape.{name}")) == size
    for name, tensor in network.state_dict().items():
        held = arrays.pop(name)
        assert held.dtype == np.float16
        np.testing.assert_array_equal(held.astype(np.float32), tensor.numpy())
    assert arrays.keys() == {"format"}


@pytest.mark.parametrize("length", [5, 16, 17, 100, 1024])
def test_the_package_forecasts_what_the_network_does(exported, length):
    network, path = exported
    values = signal(1024)[:length]
    centre, scale = centre_and_scale(values)
    forecast = EmbeddedForecaster(weights=path).forecast([values], 32)
    found = np.arcsinh((forecast.quantiles[0] - centre) / scale)
    expected = of_network(network, values, [length])
    np.testing.assert_allclose(found, np.clip(expected[0], -12, 12), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("length", [700, 333, 16, 3])
def test_the_formulas_are_those_of_the_network(exported, length):
    """A query in the midst of a context sees what came before it only."""
    network, path = exported
    values = signal(800)
    numbers, known = standard(values)
    expected = of_network(network, values, [length, 650])[0]
    oracle = Oracle(read_arrays(path, "weights"))
    found = oracle.standard_answer(numbers[:length].astype(np.float64), known[:length].astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_the_units_of_training_are_those_of_the_package():
    values = np.stack([signal(300, seed) for seed in range(20)])
    values[3, 100] = 1e4
    known = ~np.isnan(values)
    centre, scale = examples.centre_and_scale(
        torch.from_numpy(np.where(known, values, 0.0)), torch.from_numpy(known.astype(np.float64))
    )
    expected = np.array([centre_and_scale(row) for row in values])
    np.testing.assert_allclose(np.concatenate([centre, scale], axis=1), expected, rtol=1e-9, atol=1e-9)


def test_the_sizes_are_those_that_the_package_expects():
    assert runtime.LEVELS == LEVELS
    for shape in (SMALL, Shape()):
        sizes = {name: tuple(tensor.shape) for name, tensor in Network(shape).state_dict().items()}
        assert runtime.NetworkShape(**shape.as_dict()).arrays() == sizes


def test_the_command_writes_a_file_that_works(tmp_path):
    network = random_network(SMALL, 1)
    torch.save({"shape": SMALL.as_dict(), "weights": network.state_dict()}, tmp_path / "checkpoint.pt")
    command = ["-m", "training.export", str(tmp_path / "checkpoint.pt"), str(tmp_path / "weights.npz")]
    subprocess.run([sys.executable, *command], check=True)
    forecast = EmbeddedForecaster(weights=tmp_path / "weights.npz").forecast([signal(200)], 5)
    assert np.isfinite(forecast.quantiles).all()
