"""The compiled loops that the rest calls; with them numba is imported."""

from tocsin.forecasting.embedded.observations import follow, renormalise, review
from tocsin.forecasting.embedded.transformer import answer

__all__ = ["answer", "follow", "renormalise", "review"]
