"""Checks of the libraries in the extra `spark`, made only when needed."""

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

_HOW = "pip install 'tocsin[spark]'"


def require_spark() -> None:
    """Fail without pyspark and pyarrow, with an error that says how to install them."""
    for module in ("pyspark", "pyarrow"):
        if find_spec(module) is None:
            raise ImportError(f"Spark needs {module}: {_HOW}")


def require_streaming() -> None:
    """Fail without the libraries that Spark's keyed state in Python needs."""
    require_spark()
    protobuf, pandas = _version("protobuf"), _version("pandas")
    if protobuf < (6, 33):
        raise ImportError(f"Spark's keyed state needs protobuf 6.33 or newer, got {_shown(protobuf)}: {_HOW}")
    if not (1,) <= pandas < (3,):
        raise ImportError(f"Spark's keyed state needs pandas older than 3, got {_shown(pandas)}: {_HOW}")


def _version(package: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in version(package).split(".")[:2])
    except PackageNotFoundError:
        return ()


def _shown(found: tuple[int, ...]) -> str:
    return ".".join(map(str, found)) or "none"
