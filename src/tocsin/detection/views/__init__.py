"""Views of a signal: each a question about its newest observations that gives numbers to be ranked."""

from tocsin.detection.views.registry import available_views, make_view
from tocsin.detection.views.view import Seen, Stream, View, ViewSession

__all__ = ["Seen", "Stream", "View", "ViewSession", "available_views", "make_view"]
