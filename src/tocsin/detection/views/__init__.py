"""Views of a signal: each asks one question about its newest observations and answers with scores to rank."""

from tocsin.detection.views.view import Seen, Stream, View, ViewSession, available_views, make_view

__all__ = ["Seen", "Stream", "View", "ViewSession", "available_views", "make_view"]
