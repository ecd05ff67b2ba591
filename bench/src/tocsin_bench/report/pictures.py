"""What all figures share."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tocsin_bench.report.measures import method_order, without_merge

DOTS = 110


class Picture(NamedTuple):
    """A figure that was drawn, and what it shows."""

    title: str
    note: str
    path: Path


def colours_of(methods: Iterable[str]) -> dict[str, str]:
    """A colour for each method; methods without a merge come first, so that they look the same in all figures."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    pairs = [to_hex(colour) for colour in colormaps["tab20"].colors]  # type: ignore[attr-defined]
    colours = pairs[0::2] + pairs[1::2]
    ordered = sorted(set(methods), key=lambda method: (method != without_merge(method), method_order(method)))
    return {method: colours[place % len(colours)] for place, method in enumerate(ordered)}


def literal(text: str) -> str:
    """Text that is drawn literally, not as a formula."""
    return text.replace("$", r"\$")


def file_name(text: str) -> str:
    """Text as part of the name of a file, on any system."""
    return re.sub(r"[^\w.-]+", "_", text)
