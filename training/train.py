"""Train the forecaster on synthetic signals.

    python -m training.train training/config.toml CHECKPOINT [--minutes 9]

CHECKPOINT is a folder. Training goes on from what it holds, so a long training can be done in pieces: `--minutes` ends
a piece early. What is exported is `average.pt`, the moving average of the weights.
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
from torch.nn import functional

from training.dice import Dice
from training.examples import SIGNAL_LENGTH, Examples, make_examples
from training.model import LEVELS, Network, Shape
from training.signals import make_signals

#: The losses of a step: forecasts and faults, from long and from short contexts.
LOSSES = ("long", "long faults", "short", "short faults")


@dataclass(frozen=True)
class Settings:
    """The section `training` of a configuration file."""

    seed: int
    signals: int
    pooled: int
    uses: int
    steps: int
    warm_up: int
    decay: int
    matrix_rate: float
    other_rate: float
    weight_decay: float
    averaging: float
    short_share: float
    fault_share: float

    def pace(self, step: int) -> float:
        """The learning rate at this step, as a share of its highest."""
        return max(0.0, min(1.0, (step + 1) / self.warm_up, (self.steps - step) / max(1, self.decay)))


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


def suspicion(odds: Tensor, examples: Examples) -> Tensor:
    """How wrong the judgements of faults are: the mean cross-entropy of those that can be judged."""
    loss = functional.binary_cross_entropy_with_logits(odds, examples.faulty, reduction="none")
    return (loss * examples.judged).sum() / examples.judged.sum()


class Trainer:
    """Network, optimisers and moving average: everything a checkpoint holds; and the signals to train on."""

    def __init__(self, shape: Shape, settings: Settings, device: torch.device) -> None:
        torch.manual_seed(settings.seed)
        self.settings, self.device, self.step = settings, device, 0
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
        self.dice = Dice(device, settings.seed)
        self._signals, self._uses_left = torch.empty(0), 0
        self._pool: tuple[Examples, ...] = ()
        self._left: list[int] = []
        fast = device.type == "cuda"
        self._losses = torch.compile(self._plain_losses, dynamic=False) if fast else self._plain_losses

    def _plain_losses(self, long: Examples, short: Examples) -> Tensor:
        """Of forecasts and of judgements from long contexts, then of both from short ones."""
        losses = []
        for part in (long, short):
            with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.device.type == "cuda"):
                forecast, odds = self.network(part.values, part.known, part.lengths)
            losses += [pinball(forecast, part), suspicion(odds, part)]
        return torch.stack(losses)

    def _next_examples(self) -> tuple[Examples, Examples]:
        """Examples for one step; made for several steps at a time, which takes a GPU hardly longer than for one."""
        settings = self.settings
        if not self._left:
            with torch.no_grad():
                if not self._uses_left:
                    self._signals = make_signals(self.dice, settings.signals * settings.pooled, SIGNAL_LENGTH)
                    self._uses_left = settings.uses
                self._pool = make_examples(self.dice, self._signals)
            self._uses_left -= 1
            self._left = list(range(settings.pooled))
        # Rows that lie together have faults of one kind.
        first = self._left.pop()
        long, short = (part.rows(slice(first, None, settings.pooled)) for part in self._pool)
        return long, short

    def train_step(self) -> Tensor:
        """One step; gives the losses of `_plain_losses`."""
        settings = self.settings
        long, short = self._next_examples()
        pace = settings.pace(self.step)
        for optimiser, rate in zip(self.optimisers, self.rates, strict=True):
            for group in optimiser.param_groups:
                group["lr"] = rate * pace
            optimiser.zero_grad(set_to_none=True)
        losses = self._losses(long, short)
        by_length = torch.tensor([1 - settings.short_share, settings.short_share], device=self.device)
        by_task = torch.tensor([1.0, settings.fault_share], device=self.device)
        (losses * torch.outer(by_length, by_task).flatten()).sum().backward()
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
        shape = self.network.shape.as_dict()
        for name, content in {
            "average": {"shape": shape, "step": self.step, "weights": self.average},
            "weights": {"shape": shape, "step": self.step, "weights": self.network.state_dict()},
            **{
                f"optimiser{number}": {"step": self.step, "state": optimiser.state_dict()}
                for number, optimiser in enumerate(self.optimisers)
            },
        }.items():
            unfinished = folder / f"{name}.unfinished"
            torch.save(content, unfinished)
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
        self.step = steps["weights"]
        # Signals not seen before, on whatever device training goes on.
        self.dice = Dice(self.device, self.settings.seed + self.step)


def main() -> None:
    """Train until the last step, or for so many minutes."""
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
    print(f"{count / 1e6:.2f}M parameters, {device}, from step {trainer.step} of {settings.steps}", flush=True)
    folder = given.save_to or given.checkpoint
    began, first, losses = time.monotonic(), trainer.step, []
    while trainer.step < settings.steps and time.monotonic() - began < 60 * given.minutes:
        losses.append(trainer.train_step())
        if trainer.step in (first + 1, first + 20, first + 100) or trainer.step % 500 == 0:
            shown = zip(LOSSES, torch.stack(losses[-200:]).mean(0).tolist(), strict=True)
            spent = time.monotonic() - began
            rate = (trainer.step - first) / spent
            print(
                f"step {trainer.step} {' '.join(f'{name} {loss:.4f}' for name, loss in shown)} "
                f"{spent:.0f} s {rate:.2f} steps/s",
                flush=True,
            )
        if trainer.step % 500 == 0:
            trainer.save(folder)
    trainer.save(folder)
    print(f"saved {folder} at step {trainer.step}", flush=True)


if __name__ == "__main__":
    main()
