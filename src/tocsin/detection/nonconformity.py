"""Which side of its forecast makes an observation strange."""

#: What each nonconformity score makes of the error, value minus forecast; larger is stranger. The order is that of the
#: codes in `views/kernels.py`.
NONCONFORMITIES = {
    "absolute": "the size of the error",
    "high": "the error: only values above the forecast alarm",
    "low": "the negative error: only values below the forecast alarm",
}


def code_of(nonconformity: str) -> int:
    """The number by which the kernels know it."""
    return list(NONCONFORMITIES).index(nonconformity)
