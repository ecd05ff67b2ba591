"""The network itself, as many tokens at a time as stay in a core's own cache.

All sums run in one fixed order that depends on nothing but the series itself, so that a forecast is the same bits
alone or together with others, from a history or one observation at a time, with memory kept or built anew.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import compiled
from tocsin.forecasting.embedded.features import describe_patch, describe_query
from tocsin.forecasting.embedded.functions import sigmoid, sinh, softplus
from tocsin.forecasting.embedded.memory import BLOCK, Memory
from tocsin.forecasting.embedded.products import PANEL, compare, gather, multiply
from tocsin.forecasting.embedded.softmax import shares
from tocsin.forecasting.embedded.vectors import LANES
from tocsin.forecasting.embedded.weights import LEVELS, LIMIT, OUTPUTS, PATCH, Weights

Array = NDArray[Any]

_exact = compiled(with_folder=True)

# How many tokens go through the network together, at most.
_TOGETHER = 96
_EPSILON = np.float32(1e-6)
_ZERO, _ONE = np.float32(0), np.float32(1)
_QUANTILES = len(LEVELS)
_MEDIAN = _QUANTILES // 2


@_exact
def _rectify(rows: Array, count: int, bias: Array) -> None:
    """Add the bias, and square what is positive."""
    for i in range(count):
        for j in range(rows.shape[1]):
            positive = max(rows[i, j] + bias[j], _ZERO)
            rows[i, j] = positive * positive


@_exact
def _normalise(rows: Array, count: int, weight: Array, out: Array) -> None:
    """Write the rows with a mean square of 1, times the weight."""
    width = rows.shape[1]
    lanes = np.empty(LANES, dtype=np.float32)
    for i in range(count):
        lanes[:] = _ZERO
        for j in range(0, width, LANES):
            for lane in range(LANES):
                lanes[lane] += rows[i, j + lane] * rows[i, j + lane]
        total = _ZERO
        for lane in range(LANES):
            total += lanes[lane]
        factor = _ONE / np.sqrt(total / np.float32(width) + _EPSILON)
        for j in range(width):
            out[i, j] = rows[i, j] * factor * weight[j]


@_exact
def _turn(row: Array, heads: int, turn: Array, factor: np.float32) -> None:
    """Turn the first `heads` heads of a row, and multiply them by a factor."""
    pairs = turn.shape[1]
    for head in range(heads):
        first, second = row[2 * head * pairs : (2 * head + 1) * pairs], row[(2 * head + 1) * pairs :]
        for i in range(pairs):
            one, other = first[i], second[i]
            first[i] = (one * turn[0, i] - other * turn[1, i]) * factor
            second[i] = (one * turn[1, i] + other * turn[0, i]) * factor


@_exact
def _keep(memory: Memory, series: int, patch: int, layer: int, projected: Array) -> None:
    """Put a patch's keys and values into the cache."""
    block, lane = patch // BLOCK, patch % BLOCK
    groups = memory.cache.shape[3]
    width = memory.cache.shape[5] // BLOCK
    for group in range(groups):
        keys, values = memory.cache[block, series, layer, group, 0], memory.cache[block, series, layer, group, 1]
        for i in range(width):
            keys[i * BLOCK + lane] = projected[group * width + i]
            values[lane * width + i] = projected[(groups + group) * width + i]


@_exact
def _attend(
    memory: Memory, series: int, seen: int, layer: int, queries: Array, token: int, scores: Array,
    totals: Array, found: Array,
) -> None:  # fmt: skip
    """Write to `found[token]` what a token's queries find in the first `seen` patches of its series."""
    heads, groups = scores.shape[0], memory.cache.shape[3]
    width = memory.cache.shape[5] // BLOCK
    found[token] = _ZERO
    blocks = (seen + BLOCK - 1) // BLOCK
    half = BLOCK * width
    layers = memory.cache.shape[2]
    step = memory.cache.shape[1] * layers * groups * 2 * half
    for group in range(groups):
        at = token * queries.shape[1] + group * heads * width
        first = ((series * layers + layer) * groups + group) * 2 * half
        for block in range(blocks):
            compare(queries, at, heads, width, memory.cache, first + block * step, scores, block * BLOCK)
        for head in range(heads):
            totals[head] = shares(scores, head * scores.shape[1], memory.unseen, series * scores.shape[1], seen)
        for block in range(blocks):
            count = min(BLOCK, seen - block * BLOCK)
            place = first + block * step + half
            gather(scores, block * BLOCK, heads, width, memory.cache, place, count, found, at)
        for head in range(heads):
            factor = _ONE / totals[head]
            for i in range((group * heads + head) * width, (group * heads + head + 1) * width):
                found[token, i] *= factor


@_exact
def _add(rows: Array, count: int, more: Array) -> None:
    for i in range(count):
        for j in range(rows.shape[1]):
            rows[i, j] += more[i, j]


@_exact
def _transform(weights: Weights, memory: Memory, tokens: Array, count: int, places: Array, projected: Array) -> None:
    """Take tokens through all layers. `places` holds the series and the length of the context, to a token's end.

    Where they are patches, there is room for keys and values in `projected`; of the last layer nothing else is needed.
    """
    width, layers, groups = tokens.shape[1], weights.query.shape[0], weights.groups
    heads = weights.heads // groups
    head_width = width // weights.heads
    size = _ONE / np.sqrt(np.float32(head_width))
    normed, mixed = np.empty((count, width), dtype=np.float32), np.empty((count, width), dtype=np.float32)
    queries, found = np.empty((count, width), dtype=np.float32), np.empty((count, width), dtype=np.float32)
    wide = np.empty((count, weights.widen.shape[1] * PANEL), dtype=np.float32)
    nothing = np.zeros(wide.shape[1], dtype=np.float32)
    scores = np.empty((heads, memory.unseen.shape[1]), dtype=np.float32)
    totals = np.empty(heads, dtype=np.float32)
    for layer in range(layers):
        _normalise(tokens, count, weights.attention_norm[layer], normed)
        if projected.shape[0] > 0:
            multiply(normed, count, weights.key_value[layer], projected)
            for i in range(count):
                series, length = places[i, 0], places[i, 1]
                _turn(projected[i], groups, weights.turns[length], _ONE)
                _keep(memory, series, length // PATCH - 1, layer, projected[i])
            if layer == layers - 1:
                return
        multiply(normed, count, weights.query[layer], queries)
        for i in range(count):
            series, length = places[i, 0], places[i, 1]
            _turn(queries[i], weights.heads, weights.turns[length], size)
            _attend(memory, series, length // PATCH, layer, queries, i, scores, totals, found)
        multiply(found, count, weights.mix[layer], mixed)
        _add(tokens, count, mixed)
        _normalise(tokens, count, weights.hidden_norm[layer], normed)
        multiply(normed, count, weights.widen[layer], wide)
        _rectify(wide, count, nothing)
        multiply(wide, count, weights.narrow[layer], mixed)
        _add(tokens, count, mixed)


@_exact
def encode(weights: Weights, memory: Memory, patches: Array) -> None:
    """Put keys and values of these patches, `(series, patch)` in ascending order, into the cache."""
    room = min(_TOGETHER, patches.shape[0])
    features = np.empty((room, weights.patch_in.shape[1]), dtype=np.float32)
    wide = np.empty((room, weights.patch_bias.shape[0]), dtype=np.float32)
    tokens = np.empty((room, weights.head_norm.shape[0]), dtype=np.float32)
    projected = np.empty((room, weights.key_value.shape[1] * PANEL), dtype=np.float32)
    places = np.empty((room, 2), dtype=np.int64)
    for first in range(0, patches.shape[0], _TOGETHER):
        count = min(_TOGETHER, patches.shape[0] - first)
        for i in range(count):
            series, patch = patches[first + i, 0], patches[first + i, 1]
            describe_patch(memory, series, patch, features[i])
            places[i, 0], places[i, 1] = series, (patch + 1) * PATCH
            memory.encoded[series] = patch + 1
        multiply(features, count, weights.patch_in, wide)
        _rectify(wide, count, weights.patch_bias)
        multiply(wide, count, weights.patch_out, tokens)
        _transform(weights, memory, tokens, count, places, projected)


@_exact
def answer(weights: Weights, memory: Memory, asked: Array, quantiles: Array) -> None:
    """Write the forecasts asked for, `(series, length, step, column)`, to `quantiles[step, column]`."""
    room = min(_TOGETHER, asked.shape[0])
    horizon = quantiles.shape[2]
    features = np.empty((room, weights.query_in.shape[1]), dtype=np.float32)
    wide = np.empty((room, weights.query_bias.shape[0]), dtype=np.float32)
    tokens = np.empty((room, weights.head_norm.shape[0]), dtype=np.float32)
    normed = np.empty((room, weights.head_norm.shape[0]), dtype=np.float32)
    hidden = np.empty((room, weights.head_bias.shape[0]), dtype=np.float32)
    raw = np.empty((room, (horizon * OUTPUTS + PANEL - 1) // PANEL * PANEL), dtype=np.float32)
    last = np.empty(room)
    for first in range(0, asked.shape[0], _TOGETHER):
        count = min(_TOGETHER, asked.shape[0] - first)
        places = asked[first : first + count]
        for i in range(count):
            last[i] = describe_query(memory, places[i, 0], places[i, 1], features[i])
        multiply(features, count, weights.query_in, wide)
        _rectify(wide, count, weights.query_bias)
        multiply(wide, count, weights.query_out, tokens)
        _transform(weights, memory, tokens, count, places, raw[:0])
        _normalise(tokens, count, weights.head_norm, normed)
        multiply(normed, count, weights.head_in, hidden)
        _rectify(hidden, count, weights.head_bias)
        multiply(hidden, count, weights.head_out, raw)
        for i in range(count):
            series = places[i, 0]
            _unfold(
                raw[i], weights.out_bias, last[i], memory.centre[series], memory.scale[series],
                quantiles[places[i, 2], places[i, 3]],
            )  # fmt: skip


@_exact
def _unfold(raw: Array, bias: Array, last: float, centre: float, scale: float, quantiles: Array) -> None:
    """Write the quantiles `(horizon, levels)`, ascending, that the network's last layer stands for.

    The median is a share of the newest known value, as the gate says, plus an offset; every other quantile is a
    positive distance further from it than its neighbour.
    """
    horizon = quantiles.shape[0]
    gaps = np.empty(horizon * OUTPUTS)
    for i in range(horizon * OUTPUTS):
        gaps[i] = softplus(float(raw[i] + bias[i]))
    for step in range(horizon):
        at = step * OUTPUTS
        row = quantiles[step]
        below = above = row[_MEDIAN] = sigmoid(float(raw[at] + bias[at])) * last + (raw[at + 1] + bias[at + 1])
        for i in range(_MEDIAN):
            below -= gaps[at + 2 + i]
            above += gaps[at + 2 + _MEDIAN + i]
            row[_MEDIAN - 1 - i], row[_MEDIAN + 1 + i] = below, above
    flat = quantiles.reshape(-1)
    for i in range(flat.shape[0]):
        bounded = min(flat[i] if flat[i] > -LIMIT else -LIMIT, LIMIT)
        flat[i] = centre + scale * sinh(bounded)
    for i in range(flat.shape[0]):
        # A rounding of sinh could let neighbours cross that are hardly apart.
        if i % _QUANTILES > 0 and flat[i] < flat[i - 1]:
            flat[i] = flat[i - 1]
