"""Write a trained network as the package reads it: `python -m training.export CHECKPOINT weights.npz`."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tocsin.arrays import write_arrays
from tocsin.forecasting.embedded.weights import FORMAT, load_weights
from training.model import Network, Shape


def exported(shape: Shape, weights: Mapping[str, torch.Tensor]) -> dict[str, NDArray[Any]]:
    """Everything that goes into the file, by name."""
    arrays: dict[str, NDArray[Any]] = {"format": np.array(FORMAT)}
    arrays.update({f"shape.{name}": np.array(size) for name, size in shape.as_dict().items()})
    for name in Network(shape).state_dict():
        arrays[name] = weights[name].detach().float().cpu().numpy().astype(np.float16)
    return arrays


def export(checkpoint: Path, target: Path) -> None:
    """Write the network of a checkpoint, `{"shape": sizes, "weights": tensors by name}`; the file is read once."""
    held = torch.load(checkpoint, map_location="cpu", weights_only=True)
    write_arrays(exported(Shape(**held["shape"]), held["weights"]), target)
    load_weights(target)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("target", type=Path)
    given = parser.parse_args()
    export(given.checkpoint, given.target)


if __name__ == "__main__":
    main()
