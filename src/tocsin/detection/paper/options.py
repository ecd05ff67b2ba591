"""The paper's settings of W1-ACAS."""

from typing import Any

PAPER = "paper"
"""The preset that is the paper's detector."""

CONTEXT = 52
"""How many observations the paper's forecasters read; nothing earlier is judged."""

PAPER_OPTIONS: dict[str, Any] = {
    "horizons": 15,
    "alpha_c": 0.01,
    "batch": 10,
    "learning_rate": 0.001,
    "optimizer": "adam",
    # Algorithm 1 is printed with "recent"; the paper's numbers come from "extend".
    "prior": "extend",
    "window": 5000,
    "merge_horizons": "median",
    "merge_features": "fisher",
}
"""The settings of the preset that are not given."""
