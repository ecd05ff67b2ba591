"""Random numbers of the kinds that the generator of signals asks for, on any device."""

import math
import random

import torch
from torch import Tensor


class Dice:
    """Random tensors on one device, from one seed; rows are signals."""

    def __init__(self, device: torch.device | str = "cpu", seed: int = 0) -> None:
        self.device = torch.device(device)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        # To ask the device for one number would mean to wait until it has done all its work.
        self._turns = random.Random(seed)  # noqa: S311

    def uniform(self, low: float, high: float, *size: int) -> Tensor:
        """Evenly between `low` and `high`."""
        return low + (high - low) * torch.rand(size, device=self.device, generator=self.generator)

    def log_uniform(self, low: float, high: float, *size: int) -> Tensor:
        """Evenly on a logarithmic scale between `low` and `high`."""
        return torch.exp(self.uniform(math.log(low), math.log(high), *size))

    def normal(self, *size: int) -> Tensor:
        """From the standard normal law."""
        return torch.randn(size, device=self.device, generator=self.generator)

    def whole(self, low: int, high: int, *size: int) -> Tensor:
        """Whole numbers from `low` to `high - 1`."""
        return torch.randint(low, high, size, device=self.device, generator=self.generator)

    def chance(self, share: float | Tensor, *size: int) -> Tensor:
        """True with that probability."""
        return torch.rand(size, device=self.device, generator=self.generator) < share

    def poisson(self, rate: Tensor) -> Tensor:
        """Counts with those means."""
        return torch.poisson(rate, generator=self.generator)

    def turn(self) -> int:
        """Any whole number: which of several things comes first."""
        return self._turns.randrange(2**16)

    def pick(self, options: tuple[float, ...], *size: int) -> Tensor:
        """One of the options, evenly."""
        return torch.tensor(options, device=self.device)[self.whole(0, len(options), *size)]
