"""What was found, for people: tables, summaries, pictures and pages of results."""

from tocsin.reports.page import PROMISE, chart_library, charts_of, filled_page, html_cell, html_table, target_of
from tocsin.reports.tables import Chart

__all__ = ["PROMISE", "Chart", "chart_library", "charts_of", "filled_page", "html_cell", "html_table", "target_of"]
