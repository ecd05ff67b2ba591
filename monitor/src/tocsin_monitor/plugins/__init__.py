"""Kinds of sources and pushed formats that come with the monitor, known to it only by their entry points."""

import tocsin_monitor.config  # noqa: F401  first, whichever plugin is imported: it loads them all
