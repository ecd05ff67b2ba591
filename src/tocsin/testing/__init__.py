"""Contract checks for authors of views, scorers and forecasters.

Each check generates its own data, with gaps, ties and signals that begin late, and raises a `ContractError` that says
what was violated. It returns nothing on success. The built-in implementations pass the same checks.

>>> from tocsin.conformal import SlidingWindow
>>> from tocsin.detection.views import make_view
>>> check_view(make_view("movement"))
>>> check_scorer(lambda streams: SlidingWindow(streams, window=20))
>>> class Forgetful(SlidingWindow):
...     def _advance(self, scores, learn, p, rank=None):
...         p[:] = 0.5
>>> check_scorer(lambda streams: Forgetful(streams, window=20))
Traceback (most recent call last):
tocsin.testing.contract.ContractError: NaN must give NaN, and only NaN: a missing score got a p-value
"""

from tocsin.testing.contract import ContractError
from tocsin.testing.forecasters import check_forecaster
from tocsin.testing.scorers import check_scorer
from tocsin.testing.views import check_view

__all__ = ["ContractError", "check_forecaster", "check_scorer", "check_view"]
