"""Training: it learns, it can be interrupted, it refuses what it cannot use."""

import itertools
import math
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from training.dice import Dice
from training.examples import SIGNAL_LENGTH, make_examples
from training.model import LEVELS, Network, Shape
from training.signals import make_signals
from training.train import Settings, Supply, Trainer, pinball, read_config, train

SMALL = Shape(width=32, layers=2, heads=2, groups=1, hidden=64, patch_hidden=32)
SETTINGS = Settings(
    seed=1, signals=8, pooled=2, uses=2, minutes=1.0, warm_up=0.1, decay=0.5, matrix_rate=0.01, other_rate=0.003,
    weight_decay=0.02, averaging=0.9, short_share=0.5,
)  # fmt: skip
CPU = torch.device("cpu")
# Processors without bfloat16 multiply such matrices in another way, and torch says so once.
pytestmark = pytest.mark.filterwarnings("ignore:mkldnn_matmul failed:UserWarning")


def small_config(path, **changes):
    lines = ["[network]", *(f"{name} = {value}" for name, value in asdict(SMALL).items())]
    lines += ["[training]", *(f"{name} = {value}" for name, value in asdict(replace(SETTINGS, **changes)).items())]
    path.write_text("\n".join(lines))
    return path


def losses(network, examples):
    with torch.no_grad():
        return [float(pinball(network(part.values, part.known, part.lengths), part)) for part in examples]


def test_the_shipped_configuration_is_read():
    shape, settings = read_config(Path(__file__).parents[2] / "training" / "config.toml")
    assert shape == Shape()
    assert settings.minutes > 0
    assert settings.warm_up + settings.decay < 1


def test_training_learns_on_signals_it_has_not_seen():
    trainer = Trainer(SMALL, SETTINGS, CPU)
    unseen = make_examples(Dice(seed=99), make_signals(Dice(seed=98), 32, SIGNAL_LENGTH))
    before = losses(trainer.network, unseen)
    for step in range(60):
        trainer.seconds = float(step)
        trainer.train_step()
    averaged = Network(SMALL)
    averaged.load_state_dict(trainer.average)
    for network in (trainer.network, averaged):
        for was, now in zip(before, losses(network, unseen), strict=True):
            assert now < 0.97 * was


def test_each_signal_is_used_so_many_times(monkeypatch):
    made = []
    monkeypatch.setattr("training.train.make_signals", lambda *given: made.append(make_signals(*given)) or made[-1])
    supply = Supply(SETTINGS, CPU, seed=1)
    taken = [supply.take()[0].values for _ in range(9)]
    assert len(made) == 3, "two steps share a pool of examples, two pools share the signals"
    assert not torch.equal(taken[0], taken[2]), "the second use has other contexts"


def test_a_checkpoint_holds_everything(tmp_path):
    trainer = Trainer(SMALL, SETTINGS, CPU)
    trainer.seconds = 30.0
    for _ in range(3):
        trainer.train_step()
    trainer.save(tmp_path)
    other = Trainer(SMALL, SETTINGS, CPU)
    other.load(tmp_path)
    again = Trainer(SMALL, SETTINGS, CPU)
    again.load(tmp_path)
    assert (other.step, other.seconds) == (3, 30.0)
    for name, tensor in trainer.network.state_dict().items():
        assert torch.equal(tensor, other.network.state_dict()[name])
        assert torch.equal(trainer.average[name], other.average[name])
    assert torch.equal(other.train_step(), again.train_step())
    for name, tensor in other.network.state_dict().items():
        assert torch.equal(tensor, again.network.state_dict()[name]), name


def test_checkpoints_that_do_not_fit_are_refused(tmp_path):
    trainer = Trainer(SMALL, SETTINGS, CPU)
    trainer.save(tmp_path)
    with pytest.raises(ValueError, match="other sizes"):
        Trainer(replace(SMALL, layers=1), SETTINGS, CPU).load(tmp_path)
    trainer.train_step()
    trainer.save(tmp_path / "later")
    (tmp_path / "later" / "average.pt").replace(tmp_path / "average.pt")
    with pytest.raises(ValueError, match="same step"):
        Trainer(SMALL, SETTINGS, CPU).load(tmp_path)


def test_pieces_add_up_to_the_time_that_is_set(tmp_path, monkeypatch):
    """A step takes ten seconds here; the first of a piece, which compiles, is not counted."""
    clock, paces = itertools.count(0.0, 10.0), []

    def step(trainer):
        paces.append(trainer.settings.pace(trainer.seconds))
        trainer.step += 1
        return torch.zeros(2)

    monkeypatch.setattr("training.train.time.monotonic", lambda: next(clock))
    monkeypatch.setattr(Trainer, "train_step", step)
    for minutes in (0.6, math.inf):
        trainer = Trainer(SMALL, SETTINGS, CPU)
        if (tmp_path / "weights.pt").exists():
            trainer.load(tmp_path)
        train(trainer, tmp_path, minutes)
    assert (trainer.step, trainer.seconds) == (8, 60.0)
    assert paces == pytest.approx([0, 0, 1, 1, 1, 1, 2 / 3, 1 / 3])


def test_the_command_trains_in_pieces(tmp_path):
    config, folder = small_config(tmp_path / "config.toml", minutes=0.0001), tmp_path / "checkpoint"
    command = [sys.executable, "-m", "training.train", str(config), str(folder)]
    first = subprocess.run([*command, "--minutes", "0"], check=True, capture_output=True, text=True)
    assert "at step 0" in first.stdout
    second = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "from step 0\n" in second.stdout
    assert "at step 2, " in second.stdout
    assert {path.name for path in folder.iterdir()} == {
        "average.pt", "weights.pt", "optimiser0.pt", "optimiser1.pt",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "named"),
    [("[network]\npatches = 3\n[training]\n", "patches"), ("[network]\n[training]\n", "seed"), ("[other]\n", "other")],
)
def test_a_configuration_that_is_none_is_refused(tmp_path, text, named):
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=named):
        read_config(path)


def test_the_learning_rate_rises_stays_and_falls():
    paces = [SETTINGS.pace(second) for second in range(61)]
    assert paces[:7] == pytest.approx([0, 1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1])
    assert paces[6:31] == [1] * 25
    assert paces[45] == pytest.approx(0.5)
    assert paces[60] == SETTINGS.pace(61.0) == 0


def test_pinball_by_hand():
    examples, _ = make_examples(Dice(seed=5), make_signals(Dice(seed=6), 3, SIGNAL_LENGTH))
    forecast = torch.zeros(*examples.truth.shape, len(LEVELS))
    total = weights = 0.0
    for row, of_row in enumerate(examples.weight.tolist()):
        for weight, asked in zip(of_row, examples.truth[row].tolist(), strict=True):
            shares = [(step + 4) ** -0.5 for step in range(len(asked))]
            mean = [sum(max(q * y, (q - 1) * y) for q in LEVELS) / len(LEVELS) for y in asked]
            total += weight * sum(s * m for s, m in zip(shares, mean, strict=True)) / sum(shares)
            weights += weight
    assert float(pinball(forecast, examples)) == pytest.approx(total / weights, rel=1e-4)


def test_quantiles_never_cross_and_the_future_is_not_seen():
    torch.manual_seed(0)
    network = Network(SMALL)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    values, known = torch.randn(2, 128), torch.ones(2, 128)
    lengths = torch.tensor([[40, 77], [16, 100]])
    with torch.no_grad():
        forecast = network(values, known, lengths)
        later = values.clone()
        later[:, 100:] = 50.0
        assert torch.allclose(forecast, network(later, known, lengths))
    assert (forecast.diff(dim=-1) >= 0).all()
