"""Which side of its forecast makes an observation anomalous."""

#: How each nonconformity score uses the error, value minus forecast; larger is more anomalous. The order is that of the
#: codes in `views/kernels.py`.
NONCONFORMITIES = {
    "absolute": "the size of the error",
    "high": "the error: only values above the forecast alarm",
    "low": "the negative error: only values below the forecast alarm",
}


def code_of(nonconformity: str) -> int:
    """Its code in the kernels."""
    return list(NONCONFORMITIES).index(nonconformity)
