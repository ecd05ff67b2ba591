"""The network: complete patches of the context are keys and values, the newest observations ask.

A context is cut, from its first observation on, into patches of 16. Every complete patch becomes one token; a token
sees itself and the patches before it, so its keys and values never change while the context grows, and can be kept.
The forecast is made by one more token, the query: it reads the newest 32 observations directly and attends to the
complete patches. A new observation thus costs one token of work, whatever the length of the context.

Everything happens in units of the context: `(value - centre) / scale`, with the mean and the standard deviation that
the context had at some moment not long ago, and then asinh, which is linear near 0 and logarithmic far from it.
"""

import math
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
# Variations within a patch or within the newest observations are seen in units of their own size, down to this.
FINEST = 1e-4
# Each step ahead has a gate, a centre, and the distances of the other quantiles from the median.
OUTPUTS = 2 + len(LEVELS) - 1


@dataclass(frozen=True)
class Shape:
    """The sizes of a network."""

    patch: int = 16
    recent: int = 32
    width: int = 96
    layers: int = 3
    heads: int = 3
    groups: int = 1
    hidden: int = 384
    patch_hidden: int = 192
    horizon: int = 32

    @property
    def head_width(self) -> int:
        """How many numbers each head compares."""
        return self.width // self.heads

    @property
    def patch_features(self) -> int:
        """How many numbers describe a patch."""
        return 3 * self.patch + 1

    @property
    def query_features(self) -> int:
        """How many numbers describe the newest observations."""
        return 3 * self.recent + self.patch + 3

    def as_dict(self) -> dict[str, int]:
        """The sizes by name."""
        return asdict(self)


def patch_features(values: Tensor, known: Tensor) -> Tensor:
    """Describe patches `(..., patch)`: the values, their shape in units of their own spread, what is known."""
    count = known.sum(-1, keepdim=True).clamp(min=1)
    mean = (values * known).sum(-1, keepdim=True) / count
    around = (values - mean) * known
    spread = ((around * around).sum(-1, keepdim=True) / count).sqrt()
    size = spread + FINEST
    return torch.cat([values * known, around / size, known, 0.3 * torch.log(size)], -1)


def query_features(values: Tensor, known: Tensor, length: Tensor, patch: int) -> tuple[Tensor, Tensor]:
    """Describe the newest observations `(..., recent)` of contexts of that `length`; also the newest known value.

    Beside the values: how they differ from the newest known one in units of the typical step, what is known, where in
    a patch the context ends, and how long it is.
    """
    position = torch.arange(values.shape[-1], device=values.device)
    newest = torch.where(known > 0, position, -1).amax(-1, keepdim=True)
    last = torch.where(newest >= 0, values.gather(-1, newest.clamp(min=0)), 0.0)
    pairs = known[..., 1:] * known[..., :-1]
    steps = (values[..., 1:] - values[..., :-1]) * pairs
    step = ((steps * steps).sum(-1, keepdim=True) / pairs.sum(-1, keepdim=True).clamp(min=1)).sqrt()
    size = step + FINEST
    phase = functional.one_hot(length % patch, patch).to(values.dtype)
    age = 0.15 * torch.log(length.to(values.dtype))[..., None]
    features = torch.cat(
        [values * known, torch.asinh((values - last) / size) * known, known, phase, 0.3 * torch.log(size), last, age],
        -1,
    )
    return features, last


def rotation(position: Tensor, head_width: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines that turn queries and keys according to their position, in patches."""
    pairs = head_width // 2
    speed = 2.0 * 200.0 ** (-torch.arange(pairs, device=position.device) / pairs)
    angle = position[..., None] * speed
    return torch.cos(angle), torch.sin(angle)


def turned(heads: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Heads `(batch, head, token, head_width)` turned by `rotation`."""
    first, second = heads.chunk(2, -1)
    return torch.cat([first * cosine - second * sine, first * sine + second * cosine], -1)


def normed(heads: Tensor) -> Tensor:
    """Heads with a mean square of 1: their products cannot grow without bounds, however high the learning rate."""
    return functional.rms_norm(heads, heads.shape[-1:], eps=1e-6)


def attended(query: Tensor, key: Tensor, value: Tensor, seen: Tensor) -> Tensor:
    """What each head of `query` finds among the tokens it has `seen`; neighbouring heads share a key and a value.

    Written out, because with so few tokens the fused attention of torch takes several times as long.
    """
    batch, heads, tokens, width = query.shape
    groups = key.shape[1]
    scores = query.reshape(batch, groups, -1, width) @ key.transpose(-1, -2) / math.sqrt(width)
    scores = scores.view(batch, groups, heads // groups, tokens, -1).masked_fill(~seen[:, None, None], -math.inf)
    share = torch.softmax(scores.float(), -1).to(value.dtype)
    return (share.flatten(2, 3) @ value).view(batch, heads, tokens, width)


class Block(nn.Module):
    """Attention of all tokens to the patches, and a layer of squared rectifiers: a wide one for queries, a narrow one
    for patches, of which there are many. In the last block patches are only looked at, so they need none."""

    def __init__(self, shape: Shape, is_last: bool) -> None:
        super().__init__()
        self.shape = shape
        narrow = shape.groups * shape.head_width
        self.attention_norm = nn.RMSNorm(shape.width, eps=1e-6)
        self.query = nn.Linear(shape.width, shape.width, bias=False)
        self.key = nn.Linear(shape.width, narrow, bias=False)
        self.value = nn.Linear(shape.width, narrow, bias=False)
        self.sharpness = nn.Parameter(torch.full((shape.heads,), 1.5))
        self.mix = nn.Linear(shape.width, shape.width, bias=False)
        self.hidden_norm = nn.RMSNorm(shape.width, eps=1e-6)
        self.widen = nn.Linear(shape.width, shape.hidden, bias=False)
        self.narrow = nn.Linear(shape.hidden, shape.width, bias=False)
        if not is_last:
            self.patch_widen = nn.Linear(shape.width, shape.patch_hidden, bias=False)
            self.patch_narrow = nn.Linear(shape.patch_hidden, shape.width, bias=False)

    def attend(
        self, patches: Tensor, asking: Tensor, seen: Tensor, patch_turn: tuple[Tensor, Tensor],
        asking_turn: tuple[Tensor, Tensor],
    ) -> Tensor:  # fmt: skip
        """The tokens `asking (B, N, width)` with what they find in the `patches` that `seen (B, N, 1 + T)` says.

        Besides the patches there is always one key of zeros with a value of zeros, for tokens that find nothing.
        """
        shape = self.shape
        batch, tokens, _ = asking.shape
        keyed = self.attention_norm(patches)

        def split(projected: Tensor) -> Tensor:
            return projected.view(batch, -1, projected.shape[-1] // shape.head_width, shape.head_width).transpose(1, 2)

        query = normed(split(self.query(self.attention_norm(asking)))) * self.sharpness[:, None, None]
        query = turned(query, *asking_turn)
        key = functional.pad(turned(normed(split(self.key(keyed))), *patch_turn), (0, 0, 1, 0))
        value = functional.pad(split(self.value(keyed)), (0, 0, 1, 0))
        found = attended(query.to(value.dtype), key.to(value.dtype), value, seen)
        return asking + self.mix(found.transpose(1, 2).reshape(batch, tokens, shape.width))

    def feed_forward(self, queries: Tensor) -> Tensor:
        """What becomes of queries by themselves."""
        return queries + self.narrow(functional.relu(self.widen(self.hidden_norm(queries))).square())

    def feed_patches_forward(self, patches: Tensor) -> Tensor:
        """The same of patches."""
        return patches + self.patch_narrow(functional.relu(self.patch_widen(self.hidden_norm(patches))).square())


class Network(nn.Module):
    """Quantiles of the next `horizon` steps, in the units of the context."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        wide = 2 * shape.width
        self.patch_in = nn.Linear(shape.patch_features, wide)
        self.patch_out = nn.Linear(wide, shape.width, bias=False)
        self.query_in = nn.Linear(shape.query_features, wide)
        self.query_out = nn.Linear(wide, shape.width, bias=False)
        self.blocks = nn.ModuleList(Block(shape, layer == shape.layers - 1) for layer in range(shape.layers))
        self.head_norm = nn.RMSNorm(shape.width, eps=1e-6)
        self.head_in = nn.Linear(shape.width, shape.hidden)
        self.head_out = nn.Linear(shape.hidden, shape.horizon * OUTPUTS)
        self._initialise()

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.7 / math.sqrt(module.in_features))
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for block in self.blocks:
            for last in (block.mix, block.narrow, getattr(block, "patch_narrow", None)):
                if last is not None:
                    nn.init.zeros_(last.weight)
        nn.init.normal_(self.head_out.weight, std=0.01)
        # Narrow bands to begin with, and a gate that keeps the newest value.
        with torch.no_grad():
            bias = self.head_out.bias.view(self.shape.horizon, OUTPUTS)
            bias[:, 0] = 1.0
            bias[:, 2:] = -2.0

    def forward(self, values: Tensor, known: Tensor, lengths: Tensor) -> Tensor:
        """Forecast from many places of each series, `(B, Q, horizon, levels)`.

        `values (B, T)`, in units of the context and 0 where `known (B, T)` is 0, with T a multiple of the patch;
        `lengths (B, Q)`: the query sees the first so many observations. Patches that hold nothing known are not seen.
        """
        shape = self.shape
        batch, total = values.shape
        patches = total // shape.patch
        whole, whole_known = values.view(batch, patches, shape.patch), known.view(batch, patches, shape.patch)
        reach = lengths[..., None] + torch.arange(-shape.recent, 0, device=values.device)
        inside = (reach >= 0).to(values.dtype)
        reach = reach.clamp(min=0).flatten(1)
        recent = values.gather(1, reach).view(batch, -1, shape.recent) * inside
        recent_known = known.gather(1, reach).view(batch, -1, shape.recent) * inside
        asked, last = query_features(recent, recent_known, lengths, shape.patch)

        def embed(features: Tensor, first: nn.Linear, second: nn.Linear) -> Tensor:
            return second(functional.relu(first(features)).square())

        patch_tokens = embed(patch_features(whole, whole_known), self.patch_in, self.patch_out)
        query_tokens = embed(asked, self.query_in, self.query_out)

        ends = torch.arange(1, patches + 1, device=values.device)
        holds = whole_known.any(-1)[:, None]
        patch_sees = (ends <= ends[:, None]) & holds
        query_sees = (ends * shape.patch <= lengths[..., None]) & holds
        patch_sees, query_sees = (
            functional.pad(patch_sees, (1, 0), value=True),
            functional.pad(query_sees, (1, 0), value=True),
        )
        both_see = torch.cat([patch_sees, query_sees], 1)
        patch_turn = tuple(part[:, None] for part in rotation(ends.float().expand(batch, -1), shape.head_width))
        query_turn = tuple(part[:, None] for part in rotation(lengths / shape.patch, shape.head_width))
        both_turn = tuple(torch.cat(parts, 2) for parts in zip(patch_turn, query_turn, strict=True))

        for block in self.blocks[:-1]:
            both = block.attend(
                patch_tokens, torch.cat([patch_tokens, query_tokens], 1), both_see, patch_turn, both_turn
            )
            patch_tokens = block.feed_patches_forward(both[:, :patches])
            query_tokens = block.feed_forward(both[:, patches:])
        last_block = self.blocks[-1]
        query_tokens = last_block.feed_forward(
            last_block.attend(patch_tokens, query_tokens, query_sees, patch_turn, query_turn)
        )

        hidden = functional.relu(self.head_in(self.head_norm(query_tokens))).square()
        raw = self.head_out(hidden).float().view(batch, -1, shape.horizon, OUTPUTS)
        return quantiles(raw, last.float())


def quantiles(raw: Tensor, last: Tensor) -> Tensor:
    """The quantiles `(..., horizon, levels)`, ascending, that the network's last layer stands for.

    The median is a share of the newest known value, as the gate says, plus an offset; every other quantile is a
    positive distance further from it than its neighbour.
    """
    median = torch.sigmoid(raw[..., :1]) * last[..., None] + raw[..., 1:2]
    half = (raw.shape[-1] - 2) // 2
    gaps = functional.softplus(raw[..., 2:])
    below = median - gaps[..., :half].cumsum(-1).flip(-1)
    above = median + gaps[..., half:].cumsum(-1)
    return torch.cat([below, median, above], -1)
