"""Train the forecaster on synthetic signals.

    python -m training.train training/config.toml CHECKPOINT [--minutes 9]

CHECKPOINT is a folder. Training goes on from what it holds, so a long training can be done in pieces: `--minutes` ends
a piece early. The configuration says how many minutes all pieces take together; the learning rates follow that time,
whatever the speed of the machine. The first step of a piece, which compiles, does not count. What is exported is
`average.pt`, the moving average of the weights.
"""

import argparse
import math
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from training.dice import Dice
from training.examples import SIGNAL_LENGTH, Examples, make_examples
from training.model import LEVELS, Network, Shape
from training.signals import make_signals

#: The losses of a step: of forecasts from long and from short contexts.
LOSSES = ("long", "short")
#: So many seconds of training lie between two checkpoints.
SAVED_EVERY = 60.0


@dataclass(frozen=True)
class Settings:
    """The section `training` of a configuration file."""

    seed: int
    signals: int
    pooled: int
    uses: int
    minutes: float
    warm_up: float
    decay: float
    matrix_rate: float
    other_rate: float
    weight_decay: float
    averaging: float
    short_share: float

    def pace(self, seconds: float) -> float:
        """The learning rate after so many seconds of training, as a share of its highest."""
        done = seconds / (60 * self.minutes)
        return max(0.0, min(1.0, done / self.warm_up, (1 - done) / self.decay))


def read_config(path: Path) -> tuple[Shape, Settings]:
    """The sizes of the network and how to train it; refuses names it does not know."""
    with path.open("rb") as file:
        config = tomllib.load(file)
    unknown = config.keys() - {"network", "training"}
    if unknown:
        raise ValueError(f"{path} must hold the sections network and training only, got {sorted(unknown)} too")
    try:
        return Shape(**config["network"]), Settings(**config["training"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a configuration: {error}") from error


def pinball(forecast: Tensor, examples: Examples) -> Tensor:
    """The weighted mean quantile loss; near steps count more than far ones."""
    levels = torch.tensor(LEVELS, device=forecast.device)
    error = examples.truth[..., None] - forecast
    loss = torch.maximum(levels * error, (levels - 1) * error).mean(-1)
    step = torch.arange(loss.shape[-1], device=loss.device)
    by_step = (step + 4.0) ** -0.5
    loss = (loss * by_step).sum(-1) / by_step.sum()
    return (loss * examples.weight).sum() / examples.weight.sum()


class Supply:
    """Examples for one step after the other.

    They are made for several steps at a time, which takes a GPU hardly longer than for one; and signals, which take
    longer than examples, are used several times, with other windows, places and faults.
    """

    def __init__(self, settings: Settings, device: torch.device, seed: int) -> None:
        self._settings, self._dice = settings, Dice(device, seed)
        self._signals, self._uses_left = torch.empty(0), 0
        self._pool: tuple[Examples, ...] = ()
        self._left: list[int] = []

    def take(self) -> tuple[Examples, Examples]:
        """Examples from long and from short contexts."""
        settings = self._settings
        if not self._left:
            with torch.no_grad():
                if not self._uses_left:
                    self._signals = make_signals(self._dice, settings.signals * settings.pooled, SIGNAL_LENGTH)
                    self._uses_left = settings.uses
                self._pool = make_examples(self._dice, self._signals)
            self._uses_left -= 1
            self._left = list(range(settings.pooled))
        # Rows that lie together have faults of one kind.
        first = self._left.pop()
        long, short = (part.rows(slice(first, None, settings.pooled)) for part in self._pool)
        return long, short


class Trainer:
    """Network, optimisers, moving average and time spent, which a checkpoint holds; and the supply of examples."""

    def __init__(self, shape: Shape, settings: Settings, device: torch.device) -> None:
        torch.manual_seed(settings.seed)
        self.settings, self.device, self.step, self.seconds = settings, device, 0, 0.0
        self.network = Network(shape).to(device)
        self.average = {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}
        matrices = [parameter for parameter in self.network.blocks.parameters() if parameter.ndim == 2]
        inside = {id(parameter) for parameter in matrices}
        others = [parameter for parameter in self.network.parameters() if id(parameter) not in inside]
        self.optimisers: list[torch.optim.Optimizer] = [
            torch.optim.Muon(
                matrices, lr=settings.matrix_rate, weight_decay=settings.weight_decay, adjust_lr_fn="match_rms_adamw"
            ),
            torch.optim.AdamW(others, lr=settings.other_rate, weight_decay=settings.weight_decay, betas=(0.9, 0.98)),
        ]
        self.rates = [settings.matrix_rate, settings.other_rate]
        self.supply = Supply(settings, device, settings.seed)
        fast = device.type == "cuda"
        self._losses = torch.compile(self._plain_losses, dynamic=False) if fast else self._plain_losses

    def _plain_losses(self, long: Examples, short: Examples) -> Tensor:
        losses = []
        for part in (long, short):
            with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.device.type == "cuda"):
                forecast = self.network(part.values, part.known, part.lengths)
            losses.append(pinball(forecast, part))
        return torch.stack(losses)

    def train_step(self) -> Tensor:
        """One step on fresh examples; gives `LOSSES`."""
        return self.train_on(*self.supply.take())

    def train_on(self, long: Examples, short: Examples) -> Tensor:
        """One step on these examples; gives `LOSSES`."""
        settings = self.settings
        pace = settings.pace(self.seconds)
        for optimiser, rate in zip(self.optimisers, self.rates, strict=True):
            for group in optimiser.param_groups:
                group["lr"] = rate * pace
            optimiser.zero_grad(set_to_none=True)
        losses = self._losses(long, short)
        ((1 - settings.short_share) * losses[0] + settings.short_share * losses[1]).backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        for optimiser in self.optimisers:
            optimiser.step()
        self.step += 1
        # Early averages forget fast, so that the random start does not linger.
        keep = min(settings.averaging, 1 - 1 / (self.step / 10 + 1))
        now = self.network.state_dict()
        torch._foreach_lerp_(list(self.average.values()), [now[name] for name in self.average], 1 - keep)
        return losses.detach()

    def save(self, folder: Path) -> None:
        """Write a checkpoint; each file appears whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        reached = {"shape": self.network.shape.as_dict(), "step": self.step, "seconds": self.seconds}
        for name, content in {
            "average": {"weights": self.average},
            "weights": {"weights": self.network.state_dict()},
            **{
                f"optimiser{number}": {"state": optimiser.state_dict()}
                for number, optimiser in enumerate(self.optimisers)
            },
        }.items():
            unfinished = folder / f"{name}.unfinished"
            torch.save({**reached, **content}, unfinished)
            unfinished.replace(folder / f"{name}.pt")

    def load(self, folder: Path) -> None:
        """Go on from a checkpoint."""
        parts: dict[str, Any] = {
            name: torch.load(folder / f"{name}.pt", map_location=self.device, weights_only=True)
            for name in ("average", "weights", *(f"optimiser{number}" for number in range(len(self.optimisers))))
        }
        steps = {name: part["step"] for name, part in parts.items()}
        if len(set(steps.values())) != 1:
            raise ValueError(f"the files of checkpoint {folder} must be of the same step, got {steps}")
        if parts["weights"]["shape"] != self.network.shape.as_dict():
            raise ValueError(f"checkpoint {folder} holds a network of other sizes: {parts['weights']['shape']}")
        self.network.load_state_dict(parts["weights"]["weights"])
        self.average = parts["average"]["weights"]
        for number, optimiser in enumerate(self.optimisers):
            optimiser.load_state_dict(parts[f"optimiser{number}"]["state"])
        self.step, self.seconds = steps["weights"], parts["weights"]["seconds"]
        # Signals not seen before, on whatever device training goes on.
        self.supply = Supply(self.settings, self.device, self.settings.seed + self.step)


def train(trainer: Trainer, folder: Path, minutes: float = math.inf) -> None:
    """Train until the time of the settings is over, or for so many minutes; writes checkpoints to the folder."""
    began = before = time.monotonic()
    whole, saved_at, losses = 60 * trainer.settings.minutes, trainer.seconds, []
    first = trainer.step
    while trainer.seconds < whole and before - began < 60 * minutes:
        losses.append(trainer.train_step())
        now = time.monotonic()
        if trainer.step > first + 1:
            trainer.seconds += now - before
        before = now
        if trainer.step in (first + 1, first + 20, first + 100) or trainer.step % 500 == 0:
            shown = zip(LOSSES, torch.stack(losses[-200:]).mean(0).tolist(), strict=True)
            print(
                f"step {trainer.step} {' '.join(f'{name} {loss:.4f}' for name, loss in shown)} "
                f"{trainer.seconds:.0f} s of {whole:.0f}",
                flush=True,
            )
        if trainer.seconds - saved_at > SAVED_EVERY:
            trainer.save(folder)
            saved_at = trainer.seconds
    trainer.save(folder)
    print(f"saved {folder} at step {trainer.step}, {trainer.seconds:.0f} s of {whole:.0f}", flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Train the forecaster on synthetic signals.")
    parser.add_argument("config", type=Path)
    parser.add_argument("checkpoint", type=Path, help="folder to go on from, and to write to")
    parser.add_argument("--minutes", type=float, default=math.inf, help="end this piece of the training after so many")
    parser.add_argument("--save-to", type=Path, help="write here instead, and leave the first folder as it is")
    given = parser.parse_args()
    shape, settings = read_config(given.config)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_float32_matmul_precision("high")
    trainer = Trainer(shape, settings, device)
    if (given.checkpoint / "weights.pt").exists():
        trainer.load(given.checkpoint)
    count = sum(parameter.numel() for parameter in trainer.network.parameters())
    print(f"{count / 1e6:.2f}M parameters, {device}, from step {trainer.step}", flush=True)
    train(trainer, given.save_to or given.checkpoint, given.minutes)


if __name__ == "__main__":
    main()
