"""The arrays of the compiled loops: the network's weights, read and checked, and the memory of series."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.arrays import read_arrays
from tocsin.forecasting.forecaster import Floats

Singles = NDArray[np.float32]
#: A matrix in panels: the bits of half-precision numbers, or single precision where the machine does not read those.
Panels = NDArray[Any]

FORMAT = 3
#: What every network of this format has in common: how many observations make a patch, how many of the newest the
#: query reads, and how many steps ahead it looks.
PATCH, RECENT, HORIZON = 16, 32, 32
#: The levels of its quantiles, and how many numbers describe each step: a gate, a centre, and how far apart these are.
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
OUTPUTS = len(LEVELS) + 1
PATCH_FEATURES = 3 * PATCH + 1
QUERY_FEATURES = 3 * RECENT + PATCH + 3
#: The network's units end here, on both sides of 0.
LIMIT = 12.0
#: Positions run from 0 to here, in observations.
LONGEST = 1152

SHIPPED = Path(__file__).with_name("weights.npz")


@dataclass(frozen=True)
class NetworkShape:
    """The sizes of a network, as its file names them."""

    patch: int = PATCH
    recent: int = RECENT
    width: int = 96
    layers: int = 3
    heads: int = 3
    groups: int = 1
    hidden: int = 384
    patch_hidden: int = 192
    horizon: int = HORIZON

    @property
    def head_width(self) -> int:
        """How many numbers each head compares."""
        return self.width // self.heads

    def arrays(self) -> dict[str, tuple[int, ...]]:
        """The names of all weights and their shapes."""
        wide, narrow = 2 * self.width, self.groups * self.head_width
        block = {
            "attention_norm.weight": (self.width,),
            "query.weight": (self.width, self.width),
            "key.weight": (narrow, self.width),
            "value.weight": (narrow, self.width),
            "sharpness": (self.heads,),
            "mix.weight": (self.width, self.width),
            "hidden_norm.weight": (self.width,),
            "widen.weight": (self.hidden, self.width),
            "narrow.weight": (self.width, self.hidden),
        }
        # The last layer only reads patches.
        of_patches = {
            "patch_widen.weight": (self.patch_hidden, self.width),
            "patch_narrow.weight": (self.width, self.patch_hidden),
        }
        return {
            "patch_in.weight": (wide, PATCH_FEATURES),
            "patch_in.bias": (wide,),
            "patch_out.weight": (self.width, wide),
            "query_in.weight": (wide, QUERY_FEATURES),
            "query_in.bias": (wide,),
            "query_out.weight": (self.width, wide),
            **{f"blocks.{layer}.{name}": shape for layer in range(self.layers) for name, shape in block.items()},
            **{
                f"blocks.{layer}.{name}": shape
                for layer in range(self.layers - 1)
                for name, shape in of_patches.items()
            },
            "head_norm.weight": (self.width,),
            "head_in.weight": (self.hidden, self.width),
            "head_in.bias": (self.hidden,),
            "head_out.weight": (HORIZON * OUTPUTS, self.hidden),
            "head_out.bias": (HORIZON * OUTPUTS,),
        }


class Weights(NamedTuple):
    """All matrices, in panels (see `panels`), one after the other, and all vectors likewise.

    Loops that are given every one of them as an array of its own take long to compile. What is named after a matrix or
    a vector is the entry where it begins; of those that every layer has, where the first layer's does, and
    `layer_panels`, `patch_layer_panels` and `layer_vectors` are the entries from a layer to the next.
    """

    panels: Panels
    vectors: Singles
    #: Cosines and sines, `(position, 2, head_width / 2)`, that turn queries and keys by their position.
    turns: Singles
    layers: int
    heads: int
    groups: int
    width: int
    hidden: int
    patch_hidden: int
    key_value_width: int
    layer_panels: int
    patch_layer_panels: int
    layer_vectors: int
    query: int
    key_value: int
    mix: int
    widen: int
    narrow: int
    patch_widen: int
    patch_narrow: int
    patch_in: int
    patch_out: int
    query_in: int
    query_out: int
    head_in: int
    head_out: int
    attention_norm: int
    sharpness: int
    hidden_norm: int
    patch_bias: int
    query_bias: int
    head_norm: int
    head_bias: int
    out_bias: int
    no_bias: int
    ones: int


class WeightsError(OSError):
    """The weights of a model are missing or wrong."""


def load_weights(path: str | PathLike[str] | None) -> Weights:
    """The weights in that file, those that come with the package if it is None; a file is read only once."""
    try:
        file = SHIPPED if path is None else Path(path).expanduser().resolve()
        if file.exists() and not file.is_file() and not file.is_dir():  # to open a pipe or a device may take for ever
            raise ValueError("it is no file")
    except (OSError, RuntimeError, ValueError) as error:
        raise WeightsError(f"weights={path!r} could not be read: {error}") from error
    return _load(str(file))


@lru_cache(maxsize=4)
def _load(path: str) -> Weights:
    try:
        arrays = read_arrays(path, "weights")
    except (OSError, ValueError) as error:
        raise WeightsError(f"weights={path!r} could not be read: {error}") from error
    try:
        return _laid_out(arrays, _checked_shape(arrays))
    except ValueError as error:
        raise WeightsError(f"weights={path!r} are not what this version of tocsin needs: {error}") from error


def _checked_shape(arrays: Mapping[str, NDArray[Any]]) -> NetworkShape:
    """The shape that the file states; refuses a file that does not hold just such a network."""
    version = _whole(arrays, "format")
    if version != FORMAT:
        raise ValueError(f"format must be {FORMAT}, got {version}")
    shape = NetworkShape(**{field.name: _whole(arrays, f"shape.{field.name}") for field in fields(NetworkShape)})
    common = (shape.patch, shape.recent, shape.horizon)
    if common != (PATCH, RECENT, HORIZON):
        raise ValueError(f"patch, recent and horizon must be {PATCH}, {RECENT} and {HORIZON}, got {common}")
    fits = (
        shape.layers >= 1 and shape.heads >= 1 and shape.groups >= 1 and shape.heads % shape.groups == 0
        and shape.width == shape.heads * shape.head_width and shape.head_width % 16 == 0 and shape.head_width > 0
        and all(size % 32 == 0 and size > 0 for size in (shape.width, shape.hidden, shape.patch_hidden))
    )  # fmt: skip
    if not fits:
        raise ValueError(f"width, heads, groups, hidden and patch_hidden must go together, got {shape}")
    for name, expected in shape.arrays().items():
        if name not in arrays:
            raise ValueError(f"{name} is missing")
        array = arrays[name]
        if array.shape != expected or array.dtype != np.float16:
            raise ValueError(f"{name} must be float16 of shape {expected}, got {array.dtype} of shape {array.shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} must hold finite numbers")
    return shape


def _whole(arrays: Mapping[str, NDArray[Any]], name: str) -> int:
    if name not in arrays:
        raise ValueError(f"{name} is missing")
    if arrays[name].size != 1 or arrays[name].dtype.kind not in "iu":
        raise ValueError(f"{name} must be a whole number, got {arrays[name]!r}")
    return int(arrays[name].item())


def _laid_out(arrays: Mapping[str, NDArray[Any]], shape: NetworkShape) -> Weights:
    def matrix(*names: str) -> Panels:
        """The matrices of these names, side by side."""
        return panels(np.concatenate([arrays[f"{name}.weight"] for name in names])).reshape(-1)

    def vector(name: str) -> Singles:
        return arrays[name].astype(np.float32)

    matrices, vectors = _Row(), _Row()
    layer_panels = layer_vectors = 0
    for layer in range(shape.layers):
        block, panels_before, vectors_before = f"blocks.{layer}", matrices.length, vectors.length
        matrices.put("query", matrix(f"{block}.query"))
        matrices.put("key_value", matrix(f"{block}.key", f"{block}.value"))
        for name in ("mix", "widen", "narrow"):
            matrices.put(name, matrix(f"{block}.{name}"))
        for name in ("attention_norm", "hidden_norm"):
            vectors.put(name, vector(f"{block}.{name}.weight"))
        # What the products of queries and keys are multiplied by.
        vectors.put("sharpness", vector(f"{block}.sharpness") / np.sqrt(np.float32(shape.head_width)))
        layer_panels, layer_vectors = matrices.length - panels_before, vectors.length - vectors_before
    of_patches, patch_layer_panels = dict.fromkeys(("patch_widen", "patch_narrow"), 0), 0
    for layer in range(shape.layers - 1):
        before = matrices.length
        for name in of_patches:
            matrices.put(name, matrix(f"blocks.{layer}.{name}"))
        patch_layer_panels = matrices.length - before
    for name in ("patch_in", "patch_out", "query_in", "query_out", "head_in", "head_out"):
        matrices.put(name, matrix(name))
    vectors.put("patch_bias", vector("patch_in.bias"))
    vectors.put("query_bias", vector("query_in.bias"))
    vectors.put("head_norm", vector("head_norm.weight"))
    vectors.put("head_bias", vector("head_in.bias"))
    vectors.put("out_bias", vector("head_out.bias"))
    vectors.put("no_bias", np.zeros(max(shape.hidden, shape.patch_hidden), dtype=np.float32))
    vectors.put("ones", np.ones(shape.groups, dtype=np.float32))
    return Weights(
        panels=np.concatenate(matrices.parts),
        vectors=np.concatenate(vectors.parts),
        turns=_turns(shape.head_width),
        layers=shape.layers,
        heads=shape.heads,
        groups=shape.groups,
        width=shape.width,
        hidden=shape.hidden,
        patch_hidden=shape.patch_hidden,
        key_value_width=2 * shape.groups * shape.head_width,
        layer_panels=layer_panels,
        patch_layer_panels=patch_layer_panels,
        layer_vectors=layer_vectors,
        **{**of_patches, **matrices.places, **vectors.places},
    )


def panels(matrix: NDArray[np.float16], *, halves: bool | None = None) -> Panels:
    """A matrix, `(columns, depth)` as torch keeps it, in panels for `arithmetic.multiply`.

    They are bits of half-precision numbers with `halves`, the default where the machine reads those.
    """
    # numba takes a good part of a second to import
    from tocsin.forecasting.embedded.arithmetic import PANEL, READS_HALVES

    columns, depth = matrix.shape
    count = -(-columns // PANEL)
    padded = np.zeros((count * PANEL, depth), dtype=np.float16)
    padded[:columns] = matrix
    ordered = np.ascontiguousarray(padded.reshape(count, PANEL, depth).transpose(0, 2, 1))
    as_bits = READS_HALVES if halves is None else halves
    return ordered.view(np.uint16) if as_bits else ordered.astype(np.float32)


class _Row:
    """Arrays to concatenate, and where the first of each name begins."""

    def __init__(self) -> None:
        self.parts: list[Panels] = []
        self.places: dict[str, int] = {}
        self.length = 0

    def put(self, name: str, array: Panels) -> None:
        self.parts.append(array)
        self.places.setdefault(name, self.length)
        self.length += array.size


def _turns(head_width: int) -> Singles:
    pairs = head_width // 2
    speed = 2.0 * 200.0 ** (-np.arange(pairs) / pairs)
    angle = np.arange(LONGEST + 1)[:, np.newaxis] / PATCH * speed
    return np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)


#: Keys and values are kept in blocks of this many patches.
BLOCK = 16


class PatchMemory(NamedTuple):
    """The newest observations of every series, and the keys and values of their complete patches.

    The network sees `values[:length]` in units of the centre and scale of `values[:normalised]`; what is behind them is
    0. Of their patches the first `encoded` are in `cache`, for each block of patches, series, layer and group the keys,
    a column each, then the values, a row each. `unseen` is 0, or `UNSEEN` for patches that hold nothing known.
    """

    values: Floats
    length: NDArray[np.int64]
    normalised: NDArray[np.int64]
    centre: Floats
    scale: Floats
    encoded: NDArray[np.int64]
    cache: NDArray[np.float32]
    unseen: NDArray[np.float32]


def capacity(context_length: int) -> int:
    """How many observations a series grows to, at most, before all but the newest `context_length` are dropped."""
    return context_length + max(1, context_length // 8)


def make_memory(series: int, longest: int, weights: Weights) -> PatchMemory:
    """Memory for series of at most this length. The system provides it only when it is first written to."""
    blocks = max(1, -(-(longest // PATCH) // BLOCK))
    layers, pairs = weights.layers, weights.turns.shape[2]
    return PatchMemory(
        values=np.zeros((series, longest)),
        length=np.zeros(series, dtype=np.int64),
        normalised=np.zeros(series, dtype=np.int64),
        centre=np.zeros(series),
        scale=np.zeros(series),
        encoded=np.zeros(series, dtype=np.int64),
        cache=np.zeros((blocks, series, layers, weights.groups, 2, 2 * pairs * BLOCK), dtype=np.float32),
        unseen=np.zeros((series, blocks * BLOCK), dtype=np.float32),
    )
