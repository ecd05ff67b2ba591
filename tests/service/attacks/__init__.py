"""What those do who mean harm, one small function each; `python -m tests.service.hostile` runs them all."""

import importlib
import pkgutil

from tests.service.attacks.registry import ATTACKS, Attack, attack

# Each module registers its attacks: a new one needs no list to be changed.
for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["ATTACKS", "Attack", "attack"]
