"""From values to evidence: forecasts, the scores of views, their ranks, and the votes."""
