"""What adapters share: the import of a library, and the base of those to pretrained models."""

import logging
import os
import re
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.forecasting.contexts import ContextForecaster
from tocsin.forecasting.embedded.weights import WeightsError
from tocsin.forecasting.forecaster import MOST_STEPS, Floats, Forecast, Forecaster

Model = str | PathLike[str]

_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
_SOURCES = "a folder that holds a saved model, or the name (owner/model) of one on the Hugging Face hub"
_LARGEST = float(np.finfo(np.float64).max)


class MissingExtraError(ImportError):
    """A library that only one forecaster needs is not installed."""


class Limits(NamedTuple):
    """What a loaded model can do."""

    #: How many observations it reads, at most.
    context_length: int
    #: How many steps ahead it forecasts, at most.
    horizon: int
    #: The levels of its quantiles, ascending and with .5 among them; empty if it gives only medians.
    levels: tuple[float, ...] = ()


class PretrainedForecaster(ContextForecaster):
    """A pretrained neural network from another library.

    The library is imported only when a forecaster is created. Every context is standardised in double precision before
    the network sees it, so that values of any size survive its single precision: forecasts follow shift and scale of
    the values, and a context of equal values has exactly that value as its forecast.

    Parameters
    ----------
    model : a folder that holds a saved model, or the name of one on the Hugging Face hub.
    revision : its version on the hub (a tag, a branch or a commit); None for the main one.
    device : "auto" (the first CUDA device if there is one, else the CPU), or a name that torch knows: "cpu", "cuda:1".
    dtype : the precision of the network.
    context_length : how many of the newest observations it reads; None for as many as the model can.
    batch_size, time_batch : see `ContextForecaster`.
    """

    paths = ("model",)
    #: The precisions that the model runs in.
    dtypes: ClassVar[tuple[str, ...]] = ("float32",)
    #: What a folder must contain: one of each group.
    files: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("config.json",),
        ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"),
    )
    #: The module that offers the model.
    package: ClassVar[str]

    def __init__(
        self,
        model: Model,
        *,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "float32",
        context_length: int | None = None,
        batch_size: int = 256,
        time_batch: int = 1,
    ) -> None:
        wanted = 1 if context_length is None else context_length
        super().__init__(context_length=wanted, batch_size=batch_size, time_batch=time_batch)
        self.dtype = checks.choice("dtype", dtype, self.dtypes)
        self.model, folder = _find_weights(model, self.files)
        self.revision = _check_revision(revision, folder)
        # Torch first: without it, some libraries fail with errors that do not say what is missing.
        self._torch = import_library("torch", type(self))
        library = import_library(self.package, type(self))
        self._device = _find_device(self._torch, device)
        self.device = device
        try:
            self._network = self._load(library, folder)
        except Exception as error:  # loaders raise a dozen kinds of exceptions on damage
            what = (
                "is not a local folder, and could not be fetched from the hub"
                if folder is None
                else "could not be loaded"
            )
            raise WeightsError(f"model={self.model!r} {what}: {_first_line(error)}") from error
        limits = self._limits()
        if self.context_length > limits.context_length:
            raise ValueError(
                f"context_length must be at most {limits.context_length}, the limit of the model {self.model!r}, "
                f"got {self.context_length}"
            )
        if context_length is None:
            self.context_length = limits.context_length
        if limits.levels and 0.5 not in limits.levels:
            raise ValueError(f"model must forecast the median, got {self.model!r} with the levels {limits.levels}")
        self._longest_horizon = min(limits.horizon, MOST_STEPS)
        self.levels = limits.levels
        self._median = self.levels.index(0.5) if self.levels else 0

    @property
    def longest_horizon(self) -> int:
        return self._longest_horizon

    @abstractmethod
    def _load(self, library: ModuleType, folder: str | None) -> Any:
        """The network, from a folder or else from the hub, on `self._device` and ready to forecast."""

    @abstractmethod
    def _limits(self) -> Limits:
        """What the network can do; rejects an unsuitable one."""

    @abstractmethod
    def _infer(self, contexts: NDArray[np.float32], horizon: int) -> Any:
        """A tensor `(B, horizon, levels)` of quantiles, or `(B, horizon, 1)` of medians, from `contexts[B, L]`."""

    def _predict(self, contexts: Floats, horizon: int) -> Forecast:
        scaled, centre, scale = standardise(contexts)
        with self._torch.inference_mode():
            outcome = self._infer(scaled.astype(np.float32), horizon)
        # Sorted here already, so that the median stays the quantile of level .5 where a network lets them cross.
        ascending = np.sort(outcome.cpu().double().numpy(), axis=-1)
        if not np.isfinite(ascending).all():
            raise FloatingPointError(f"the model {self.model!r} gave forecasts that are not numbers in {self.dtype}")
        with np.errstate(over="ignore"):
            values = centre[:, np.newaxis, np.newaxis] + scale[:, np.newaxis, np.newaxis] * ascending
        values = np.clip(values, -_LARGEST, _LARGEST)
        return Forecast(values[..., self._median], values if self.levels else None)


def import_library(module: str, forecaster: type[Forecaster]) -> ModuleType:
    """The module of that name, or an error that says how to install it."""
    try:
        with _root_logger_kept():
            return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{forecaster.__name__} needs {module}: pip install '{forecaster.extra}' ({error})",
            name=module,
        ) from error


@contextmanager
def hushed(folder: str | None) -> Iterator[None]:
    """Silence messages of transformers that do not matter to users; keep progress bars for downloads."""
    logs = import_module("transformers.utils.logging")
    verbosity, bars = logs.get_verbosity(), logs.is_progress_bar_enabled()
    logs.set_verbosity_error()
    if folder is not None:
        logs.disable_progress_bar()
    try:
        yield
    finally:
        logs.set_verbosity(verbosity)
        if bars:
            logs.enable_progress_bar()


def load_whole(kind: Any, folder: str | None, name: str, revision: str | None) -> Any:
    """A network of the given transformers class; rejects weights that would leave parts randomly initialised."""
    with hushed(folder):
        config, _ = kind.config_class.get_config_dict(folder or name, revision=revision)
        found, needed = config.get("model_type"), kind.config_class.model_type
        if found != needed:
            raise ValueError(f"expected a model of type {needed!r}, got type {found!r}")
        network, report = kind.from_pretrained(folder or name, revision=revision, output_loading_info=True)
    if report["missing_keys"] or report["mismatched_keys"]:
        raise ValueError(f"these are not the weights of a {kind.__name__}, or not all of them")
    return network


@contextmanager
def _root_logger_kept() -> Iterator[None]:
    """Undo changes to global logging by a library's import (granite-tsfm sets up its own)."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers


def standardise(contexts: Floats) -> tuple[Floats, Floats, Floats]:
    """The contexts with mean 0 and deviation 1, each along its row, and the means and deviations to undo that.

    A context of equal values becomes zeros, with a deviation of 0. Scaled by the largest value first, so that squares
    can neither overflow nor vanish.
    """
    largest = np.nanmax(np.abs(contexts), axis=1, keepdims=True)
    largest[largest == 0] = 1.0
    relative = contexts / largest
    mean = np.nanmean(relative, axis=1, keepdims=True)
    deviation = np.nanstd(relative, axis=1, keepdims=True)
    equal = np.nanmin(contexts, axis=1, keepdims=True) == np.nanmax(contexts, axis=1, keepdims=True)
    mean = np.where(equal, np.nanmax(relative, axis=1, keepdims=True), mean)
    deviation[equal] = 0.0
    scaled = (relative - mean) / np.where(deviation == 0, 1.0, deviation)
    return scaled, (mean * largest)[:, 0], (deviation * largest)[:, 0]


def _find_weights(model: Model, files: tuple[tuple[str, ...], ...]) -> tuple[str, str | None]:
    """The model as it was given, and the full path of its folder; None for a name that must be one on the hub."""
    if not isinstance(model, (str, PathLike)):
        raise TypeError(f"model must be {_SOURCES}, got {model!r}")
    given = os.fspath(model)
    folder = Path(given).expanduser()
    if given and folder.is_dir():
        for group in files:
            if not any((folder / name).is_file() for name in group):
                raise WeightsError(f"model must be {_SOURCES}, got {given!r}: it holds no {' or '.join(group)}")
        return given, str(folder.resolve())
    if isinstance(model, PathLike) or not _HUB_NAME.fullmatch(given):
        raise WeightsError(f"model must be {_SOURCES}, got {given!r}: there is no such folder")
    return given, None


def _check_revision(revision: Any, folder: str | None) -> str | None:
    if revision is not None and not isinstance(revision, str):
        raise TypeError(f"revision must be a name, or None, got {revision!r}")
    if revision is not None and folder is not None:
        raise ValueError(f"revision must be None for a model in a folder, got {revision!r}")
    return revision


def _find_device(torch: ModuleType, device: Any) -> Any:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not isinstance(device, str):
        raise TypeError(f"device must be 'auto' or a name that torch knows, got {device!r}")
    try:
        torch.zeros(1, device=device).item()  # a known name does not mean that the device exists
    except (AssertionError, RuntimeError) as error:
        raise ValueError(
            f"device must be 'auto' or a name that torch knows and can use here, got {device!r}: {_first_line(error)}"
        ) from error
    return torch.device(device)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
