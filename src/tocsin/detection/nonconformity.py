"""How strange an observation is, given its forecasts."""

#: What each nonconformity score makes of the error, value minus forecast; larger is stranger. The order is that of the
#: codes in `kernels.py`.
NONCONFORMITIES = {
    "absolute": "the size of the error",
    "signed": "the error itself, on both sides apart: twice the smaller of the p-values of high and low",
    "high": "the error: only values above the forecast alarm",
    "low": "the negative error: only values below the forecast alarm",
}


def code_of(nonconformity: str) -> int:
    """The number by which the kernels know it."""
    return list(NONCONFORMITIES).index(nonconformity)


def sides_of(nonconformity: str) -> int:
    """How many scores one error gives."""
    return 2 if nonconformity == "signed" else 1
