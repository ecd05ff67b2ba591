"""Views of a signal: each asks one question about its newest observations and answers with scores to rank."""

from tocsin.detection.views.registry import available_views, make_view
from tocsin.detection.views.view import Seen, Stream, View, ViewSession

__all__ = ["Seen", "Stream", "View", "ViewSession", "available_views", "make_view"]
