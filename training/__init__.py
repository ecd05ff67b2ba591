"""How the embedded forecaster is made and judged; no part of the package that is installed."""
