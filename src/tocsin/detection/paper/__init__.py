"""The detector of the paper on W1-ACAS, as printed: errors of every horizon, p-values, an alarm where p < alpha."""
