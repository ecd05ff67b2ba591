"""How good forecasts are: on folders of series, beside the classical models, and with spoiled contexts."""
