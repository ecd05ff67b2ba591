"""The compiled loops that the rest calls; with them numba is imported."""

from tocsin.forecasting.embedded.observations import follow, review, settle
from tocsin.forecasting.embedded.transformer import answer

__all__ = ["answer", "follow", "review", "settle"]
