"""The network itself, as many tokens at a time as stay in a core's own cache.

All sums run in one fixed order that depends on nothing but the series itself, so that a forecast is the same bits
alone or together with others, from a history or one observation at a time, with memory kept or built anew.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import compiled, inlined, inner
from tocsin.forecasting.embedded.arithmetic import (
    LANES,
    PANEL,
    compare,
    gather,
    multiply,
    shares,
    sigmoid,
    sinh,
    softplus,
    stays_one,
)
from tocsin.forecasting.embedded.features import at_rest, describe_patch, describe_query
from tocsin.forecasting.embedded.weights import (
    BLOCK,
    LIMIT,
    PATCH,
    PATCH_FEATURES,
    QUERY_FEATURES,
    PatchMemory,
    Weights,
)

Array = NDArray[Any]

_exact = compiled(with_folder=True)
_inner = inner()

# How many tokens go through the network together, at most.
_TOGETHER = 96
_EPSILON = np.float32(1e-6)
# A signal at rest is forecast to stay exactly where it is if the network's median is within so many scales of it:
# it is not more precise than that, and its smallest errors would be the largest in the past of a switch.
_STAYS = 0.01
_ZERO, _ONE = np.float32(0), np.float32(1)


@_inner
def _make(rows: int, columns: int) -> Array:
    """Room for a number of floats."""
    stays_one()
    return np.empty((rows, columns), dtype=np.float32)


@_exact
def _rectify(rows: Array, count: int, vectors: Array, at: int) -> None:
    """Add the bias that begins at that entry of `vectors`, and square what is positive."""
    stays_one()
    bias = vectors[at : at + rows.shape[1]]
    for i in range(count):
        for j in range(rows.shape[1]):
            positive = max(rows[i, j] + bias[j], _ZERO)
            rows[i, j] = positive * positive


@_exact
def _normalise(rows: Array, count: int, vectors: Array, at: int, out: Array) -> None:
    """Write the rows with a mean square of 1, times the weight that begins at that entry of `vectors`."""
    stays_one()
    width = rows.shape[1]
    weight = vectors[at : at + width]
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


@_inner
def _turn(row: Array, heads: int, turn: Array, vectors: Array, at: int) -> None:
    """Turn the first `heads` heads of a row, with a mean square of 1, times the factor in `vectors` from `at` on."""
    pairs = turn.shape[1]
    for head in range(heads):
        first, second = row[2 * head * pairs : (2 * head + 1) * pairs], row[(2 * head + 1) * pairs :]
        squares = _ZERO
        for i in range(pairs):
            squares += first[i] * first[i] + second[i] * second[i]
        factor = vectors[at + head] / np.sqrt(squares / np.float32(2 * pairs) + _EPSILON)
        for i in range(pairs):
            one, other = first[i], second[i]
            first[i] = (one * turn[0, i] - other * turn[1, i]) * factor
            second[i] = (one * turn[1, i] + other * turn[0, i]) * factor


@_inner
def _keep(cache: Array, series: int, patch: int, layer: int, projected: Array) -> None:
    """Put a patch's keys and values into the cache."""
    block, lane = patch // BLOCK, patch % BLOCK
    groups = cache.shape[3]
    width = cache.shape[5] // BLOCK
    for group in range(groups):
        keys, values = cache[block, series, layer, group, 0], cache[block, series, layer, group, 1]
        for i in range(width):
            keys[i * BLOCK + lane] = projected[group * width + i]
            values[lane * width + i] = projected[(groups + group) * width + i]


@_inner
def _attend(
    cache: Array, unseen: Array, series: int, seen: int, layer: int, queries: Array, token: int, scores: Array,
    totals: Array, found: Array,
) -> None:  # fmt: skip
    """Write to `found[token]` what a token's queries find in the first `seen` patches of its series."""
    heads, groups = scores.shape[0], cache.shape[3]
    width = cache.shape[5] // BLOCK
    found[token] = _ZERO
    blocks = (seen + BLOCK - 1) // BLOCK
    half = BLOCK * width
    layers = cache.shape[2]
    step = cache.shape[1] * layers * groups * 2 * half
    for group in range(groups):
        at = token * queries.shape[1] + group * heads * width
        first = ((series * layers + layer) * groups + group) * 2 * half
        for block in range(blocks):
            compare(queries, at, heads, width, cache, first + block * step, scores, block * BLOCK)
        for head in range(heads):
            totals[head] = shares(scores, head * scores.shape[1], unseen, series * scores.shape[1], seen)
        for block in range(blocks):
            count = min(BLOCK, seen - block * BLOCK)
            place = first + block * step + half
            gather(scores, block * BLOCK, heads, width, cache, place, count, found, at)
        for head in range(heads):
            factor = _ONE / totals[head]
            for i in range((group * heads + head) * width, (group * heads + head + 1) * width):
                found[token, i] *= factor


@_inner
def _add(rows: Array, count: int, more: Array) -> None:
    for i in range(count):
        for j in range(rows.shape[1]):
            rows[i, j] += more[i, j]


@inlined
def _transform(
    weights: Weights, cache: Array, unseen: Array, tokens: Array, count: int, places: Array, projected: Array,
    are_patches: bool,
) -> None:  # fmt: skip
    """Take tokens through all layers. `places` holds the series and the length of the context, to a token's end.

    The keys and values of patches are kept; of the last layer nothing else of them is needed.
    """
    width, layers, groups = weights.width, weights.layers, weights.groups
    heads = weights.heads // groups
    normed, mixed, queries, found = _make(count, width), _make(count, width), _make(count, width), _make(count, width)
    wide = _make(count, weights.patch_hidden if are_patches else weights.hidden)
    scores = _make(heads, unseen.shape[1])
    totals = np.empty(heads, dtype=np.float32)
    panels, vectors = weights.panels, weights.vectors
    for layer in range(layers):
        at, vectors_at = layer * weights.layer_panels, layer * weights.layer_vectors
        _normalise(tokens, count, vectors, weights.attention_norm + vectors_at, normed)
        if are_patches:
            multiply(normed, count, panels, weights.key_value + at, projected)
            for i in range(count):
                series, length = places[i, 0], places[i, 1]
                _turn(projected[i], groups, weights.turns[length], vectors, weights.ones)
                _keep(cache, series, length // PATCH - 1, layer, projected[i])
            if layer == layers - 1:
                return
        multiply(normed, count, panels, weights.query + at, queries)
        for i in range(count):
            series, length = places[i, 0], places[i, 1]
            _turn(queries[i], weights.heads, weights.turns[length], vectors, weights.sharpness + vectors_at)
            _attend(cache, unseen, series, length // PATCH, layer, queries, i, scores, totals, found)
        multiply(found, count, panels, weights.mix + at, mixed)
        _add(tokens, count, mixed)
        _normalise(tokens, count, vectors, weights.hidden_norm + vectors_at, normed)
        widen, narrow = weights.widen + at, weights.narrow + at
        if are_patches:
            widen = weights.patch_widen + layer * weights.patch_layer_panels
            narrow = weights.patch_narrow + layer * weights.patch_layer_panels
        multiply(normed, count, panels, widen, wide)
        _rectify(wide, count, vectors, weights.no_bias)
        multiply(wide, count, panels, narrow, mixed)
        _add(tokens, count, mixed)


@_inner
def _unfold(raw: Array, bias: Array, last: float, centre: float, scale: float, quantiles: Array) -> None:
    """Write the quantiles `(horizon, levels)`, ascending, that the network's last layer stands for.

    The median is a share of the newest known value, as the gate says, plus an offset; every other quantile is a
    positive distance further from it than its neighbour.
    """
    horizon, levels = quantiles.shape
    outputs, middle = levels + 1, levels // 2
    gaps, flat = np.empty(horizon * outputs), np.empty(horizon * levels)
    for i in range(horizon * outputs):
        gaps[i] = softplus(float(raw[i] + bias[i]))
    for step in range(horizon):
        at = step * outputs
        row = flat[step * levels : (step + 1) * levels]
        below = above = row[middle] = sigmoid(float(raw[at] + bias[at])) * last + (raw[at + 1] + bias[at + 1])
        for i in range(middle):
            below -= gaps[at + 2 + i]
            above += gaps[at + 2 + middle + i]
            row[middle - 1 - i], row[middle + 1 + i] = below, above
    for i in range(flat.shape[0]):
        bounded = min(flat[i] if flat[i] > -LIMIT else -LIMIT, LIMIT)
        flat[i] = centre + scale * sinh(bounded)
    for i in range(flat.shape[0]):
        # A rounding of sinh could let neighbours cross that are hardly apart.
        if i % levels > 0 and flat[i] < flat[i - 1]:
            flat[i] = flat[i - 1]
        quantiles[i // levels, i % levels] = flat[i]


@_inner
def _stay(quantiles: Array, value: float, scale: float) -> None:
    """Forecast exactly this value, of a signal at rest, wherever the median is close to it."""
    horizon, levels = quantiles.shape
    middle = levels // 2
    for step in range(horizon):
        row = quantiles[step]
        if abs(row[middle] - value) < _STAYS * scale:
            for i in range(middle):
                row[i], row[middle + 1 + i] = min(row[i], value), max(row[middle + 1 + i], value)
            row[middle] = value


@_exact
def answer(weights: Weights, memory: PatchMemory, patches: Array, asked: Array, quantiles: Array) -> None:
    """Encode patches, `(series, patch)` in ascending order, and then answer what is asked.

    Keys and values of the patches go into the cache, the forecasts asked for, `(series, length, step, column)`, to
    `quantiles[step, column]`, for as many steps ahead as it has room for. One loop does both: what it calls would
    otherwise be compiled twice.
    """
    panels, vectors, width = weights.panels, weights.vectors, weights.width
    outputs = quantiles.shape[2] * (quantiles.shape[3] + 1)
    room = min(_TOGETHER, max(patches.shape[0], asked.shape[0]))
    patch_features, query_features = _make(room, PATCH_FEATURES), _make(room, QUERY_FEATURES)
    wide, tokens, normed = _make(room, 2 * width), _make(room, width), _make(room, width)
    projected, hidden = _make(room, weights.key_value_width), _make(room, weights.hidden)
    raw = _make(room, (outputs + PANEL - 1) // PANEL * PANEL)
    ends, last = np.empty((room, 2), dtype=np.int64), np.empty(room)
    done = 0
    while done < patches.shape[0] + asked.shape[0]:
        are_patches = done < patches.shape[0]
        if are_patches:
            count = min(_TOGETHER, patches.shape[0] - done)
            places = ends[:count]
            for i in range(count):
                series, patch = patches[done + i, 0], patches[done + i, 1]
                memory.unseen[series, patch] = describe_patch(
                    memory.values[series], patch, memory.centre[series], memory.scale[series], patch_features[i]
                )
                places[i, 0], places[i, 1] = series, (patch + 1) * PATCH
                memory.encoded[series] = patch + 1
            multiply(patch_features, count, panels, weights.patch_in, wide)
            _rectify(wide, count, vectors, weights.patch_bias)
            multiply(wide, count, panels, weights.patch_out, tokens)
        else:
            first = done - patches.shape[0]
            count = min(_TOGETHER, asked.shape[0] - first)
            places = asked[first : first + count]
            for i in range(count):
                series, length = places[i, 0], places[i, 1]
                last[i] = describe_query(
                    memory.values[series], length, memory.centre[series], memory.scale[series], query_features[i]
                )
            multiply(query_features, count, panels, weights.query_in, wide)
            _rectify(wide, count, vectors, weights.query_bias)
            multiply(wide, count, panels, weights.query_out, tokens)
        done += count
        _transform(weights, memory.cache, memory.unseen, tokens, count, places, projected, are_patches)
        if are_patches:
            continue
        _normalise(tokens, count, vectors, weights.head_norm, normed)
        multiply(normed, count, panels, weights.head_in, hidden)
        _rectify(hidden, count, vectors, weights.head_bias)
        multiply(hidden, count, panels, weights.head_out, raw)
        for i in range(count):
            series, said = places[i, 0], quantiles[places[i, 2], places[i, 3]]
            centre, scale = memory.centre[series], memory.scale[series]
            _unfold(raw[i], vectors[weights.out_bias :], last[i], centre, scale, said)
            value = at_rest(memory.values[series], places[i, 1])
            if not np.isnan(value):
                _stay(said, value, scale)
