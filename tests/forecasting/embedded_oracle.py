"""The embedded network straight from its formulas, in double precision and one token at a time; and random weights."""

import math

import numpy as np

from tocsin.forecasting.embedded.weights import FORMAT, NetworkShape

HORIZON, LEVELS = 32, 9
# Heads that do not come out even in threes, one group, and sizes that keep the tests short.
SMALL = NetworkShape(width=64, layers=3, heads=4, groups=1, hidden=96, patch_hidden=32)


def random_arrays(shape=SMALL, seed=0):
    """A file's arrays: weights such that forecasts stay near what was seen, and every one of them matters."""
    rng = np.random.default_rng(seed)
    arrays = {"format": np.array(FORMAT)}
    arrays.update({f"shape.{name}": np.array(size) for name, size in vars(shape).items()})
    for name, size in shape.arrays().items():
        if "norm" in name:
            weights = 1 + 0.2 * rng.normal(size=size)
        elif name == "head_out.bias":
            weights = np.tile([1.0, 0.0] + [-2.0] * (LEVELS - 1), HORIZON) + 0.1 * rng.normal(size=size)
        elif name.endswith("sharpness"):
            weights = 1.5 + 0.3 * rng.normal(size=size)
        elif name.endswith("bias"):
            weights = 0.1 * rng.normal(size=size)
        else:
            weights = (0.1 if name == "head_out.weight" else 0.7) * rng.normal(size=size) / math.sqrt(size[1])
        arrays[name] = weights.astype(np.float16)
    return arrays


def centre_and_scale(values):
    """Mean and deviation of the known values, all that is beyond four deviations brought in, twice."""
    known = values[~np.isnan(values)]
    difference = known - known[0]
    largest = np.abs(difference).max()
    if largest == 0:
        return known[0], 0.0
    relative = difference / largest
    centre, spread = relative.mean(), relative.std()
    for _ in range(2):
        clipped = np.clip(relative, centre - 4 * spread, centre + 4 * spread)
        centre, spread = clipped.mean(), clipped.std()
    return known[0] + largest * centre, largest * spread


def patch_features(values, known):
    count = max(1, known.sum())
    mean = (values * known).sum() / count
    around = (values - mean) * known
    size = math.sqrt((around**2).sum() / count) + 1e-4
    return np.concatenate([values * known, around / size, known, [0.3 * math.log(size)]])


def query_features(values, known, length):
    """Also the newest known value."""
    last = values[known > 0][-1] if known.any() else 0.0
    pairs = known[1:] * known[:-1]
    size = math.sqrt(((np.diff(values) * pairs) ** 2).sum() / max(1, pairs.sum())) + 1e-4
    phase = np.eye(16)[length % 16]
    rest = [0.3 * math.log(size), last, 0.15 * math.log(length)]
    return np.concatenate([values * known, np.arcsinh((values - last) / size) * known, known, phase, rest]), last


def stay(quantiles, context, scale):
    """If the newest 32 values, half of them known, are one and the same, medians within .01 scales of it become it."""
    newest = context[-32:]
    newest = newest[~np.isnan(newest)]
    if newest.size >= 16 and np.all(newest == newest[0]):
        half = LEVELS // 2
        close = np.abs(quantiles[:, half] - newest[0]) < 0.01 * scale
        quantiles[close, :half] = np.minimum(quantiles[close, :half], newest[0])
        quantiles[close, half] = newest[0]
        quantiles[close, half + 1 :] = np.maximum(quantiles[close, half + 1 :], newest[0])
    return quantiles


class Oracle:
    """The network that a file's arrays hold."""

    def __init__(self, arrays):
        self.weights = {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}
        self.heads, self.groups = int(arrays["shape.heads"]), int(arrays["shape.groups"])
        self.layers = int(arrays["shape.layers"])

    def linear(self, name, x):
        return self.weights[f"{name}.weight"] @ x + self.weights.get(f"{name}.bias", 0.0)

    def norm(self, name, x):
        return x / math.sqrt((x**2).mean() + 1e-6) * self.weights[f"{name}.weight"]

    def embedded(self, name, features):
        return self.linear(f"{name}_out", np.maximum(self.linear(f"{name}_in", features), 0) ** 2)

    def turned(self, projected, heads, position):
        """Each head, its halves taken as pairs, turned by angles in proportion to the position."""
        split = projected.reshape(heads, -1)
        pairs = split.shape[1] // 2
        angle = position * 2.0 * 200.0 ** (-np.arange(pairs) / pairs)
        one, other = split[:, :pairs], split[:, pairs:]
        return np.concatenate(
            [one * np.cos(angle) - other * np.sin(angle), one * np.sin(angle) + other * np.cos(angle)], axis=1
        )

    def sized(self, heads):
        """Heads with a mean square of 1."""
        return heads / np.sqrt((heads**2).mean(axis=1, keepdims=True) + 1e-6)

    def layer(self, layer, token, position, keys, values, of=""):
        """What becomes of a token that sees these keys and values, `(seen, group, width)`; `of` is its own layer."""
        block = f"blocks.{layer}"
        queries = self.sized(
            self.turned(
                self.linear(f"{block}.query", self.norm(f"{block}.attention_norm", token)), self.heads, position
            )
        )
        queries = queries * self.weights[f"{block}.sharpness"][:, np.newaxis]
        found = []
        for head, query in enumerate(queries):
            group = head // (self.heads // self.groups)
            scores = [0.0] + [key[group] @ query / math.sqrt(query.size) for key in keys]
            shares = np.exp(np.array(scores) - max(scores))
            shares /= shares.sum()
            found.append(sum((s * v[group] for s, v in zip(shares[1:], values, strict=True)), np.zeros(query.size)))
        token = token + self.linear(f"{block}.mix", np.concatenate(found))
        wide = np.maximum(self.linear(f"{block}.{of}widen", self.norm(f"{block}.hidden_norm", token)), 0) ** 2
        return token + self.linear(f"{block}.{of}narrow", wide)

    def standard_answer(self, values, known):
        """The quantiles `(horizon, levels)` that follow values in the network's units, 0 where not known."""
        length = values.size
        recent, recent_known = np.zeros(32), np.zeros(32)
        newest = min(32, length)
        recent[32 - newest :], recent_known[32 - newest :] = values[-newest:], known[-newest:]
        features, last = query_features(recent, recent_known, length)
        asking = self.embedded("query", features)
        ends = range(16, length + 1, 16)
        tokens = [self.embedded("patch", patch_features(values[end - 16 : end], known[end - 16 : end])) for end in ends]
        holds = [known[end - 16 : end].any() for end in ends]
        for layer in range(self.layers):
            block = f"blocks.{layer}"
            normed = [self.norm(f"{block}.attention_norm", token) for token in tokens]
            keys = [
                self.sized(self.turned(self.linear(f"{block}.key", n), self.groups, i + 1))
                for i, n in enumerate(normed)
            ]
            contents = [self.linear(f"{block}.value", n).reshape(self.groups, -1) for n in normed]

            def seen(parts, until, holds=holds):
                return [part for part, there in zip(parts[:until], holds[:until], strict=True) if there]

            asking = self.layer(layer, asking, length / 16, seen(keys, len(keys)), seen(contents, len(keys)))
            if layer < self.layers - 1:
                tokens = [
                    self.layer(layer, token, i + 1, seen(keys, i + 1), seen(contents, i + 1), of="patch_")
                    for i, token in enumerate(tokens)
                ]
        hidden = np.maximum(self.linear("head_in", self.norm("head_norm", asking)), 0) ** 2
        raw = self.linear("head_out", hidden).reshape(HORIZON, LEVELS + 1)
        gaps = np.logaddexp(0, raw[:, 2:])
        median = last / (1 + np.exp(-raw[:, :1])) + raw[:, 1:2]
        half = LEVELS // 2
        below = median - np.cumsum(gaps[:, :half], axis=1)[:, ::-1]
        return np.concatenate([below, median, median + np.cumsum(gaps[:, half:], axis=1)], axis=1)

    def forecast(self, context, normalised=None):
        """The quantiles `(horizon, levels)` of a context, its first `normalised` values giving the units."""
        context = np.asarray(context, dtype=np.float64)
        context = context[np.flatnonzero(~np.isnan(context))[0] :]
        centre, scale = centre_and_scale(context[:normalised])
        if scale == 0:
            return np.full((HORIZON, LEVELS), centre)
        known = ~np.isnan(context)
        standard = np.clip(np.arcsinh((np.where(known, context, centre) - centre) / scale), -12, 12)
        quantiles = self.standard_answer(standard.astype(np.float32).astype(np.float64), known.astype(np.float64))
        return stay(centre + scale * np.sinh(np.clip(quantiles, -12, 12)), context, scale)
