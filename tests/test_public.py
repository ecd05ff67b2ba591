"""What others may rely on: names, a light import, the rooms' boundaries."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tocsin
import tocsin.conformal
import tocsin.data
import tocsin.detection
import tocsin.evaluation
import tocsin.forecasting
import tocsin.testing
import tocsin_bench
import tocsin_monitor

ROOMS = [tocsin, tocsin.conformal, tocsin.data, tocsin.detection, tocsin.evaluation, tocsin.forecasting, tocsin.testing]
SOURCE = Path(tocsin.__file__).parent


def test_names_that_are_imported_late_are_those_that_type_checkers_see():
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    seen = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen - {"Any", "TYPE_CHECKING"} == set(tocsin.__all__)
    for name in tocsin.__all__:
        assert getattr(tocsin, name) is not None


@pytest.mark.parametrize("module", ROOMS)
def test_every_public_name_is_there_and_documented(module):
    for name in module.__all__:
        value = getattr(module, name)
        assert callable(value) <= bool(value.__doc__), name


@pytest.mark.slow
@pytest.mark.parametrize("module", ["tocsin", "tocsin.testing"])
def test_import_is_light(module):
    script = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"numba", "llvmlite", "scipy", "matplotlib", "rich", "typer", "pandas", "polars", "pyarrow", "narwhals"}
    heavy |= {"torch", "chronos", "tsfm_public", "tirex", "statsforecast"}
    assert not heavy & {name.split(".")[0] for name in loaded}


@pytest.mark.full
def test_works_where_numba_finds_no_folder_for_its_cache():
    script = (
        "from numba.core.caching import CacheImpl; CacheImpl._locator_classes = []\n"
        "import tocsin.conformal; print(tocsin.conformal.SlidingWindow(window=5).run([3.0, 1.0, 2.0]).tolist())"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[1.0, 1.0, 0.6666666666666666]"


@pytest.mark.slow
def test_scorers_import_nothing_but_numerics():
    allowed = {"numpy", "numba", "scipy", "tocsin"} | set(sys.stdlib_module_names)
    for path in (SOURCE / "conformal").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module] if isinstance(node, ast.ImportFrom) else []
            for module in modules:
                assert module.split(".")[0] in allowed, f"{path.name} imports {module}"
                if module.startswith("tocsin"):
                    assert module == "tocsin" or module.startswith(
                        ("tocsin.conformal", "tocsin.checks", "tocsin.compilation", "tocsin.constants", "tocsin.arrays")
                    )


def test_nothing_pickles():
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        assert "import pickle" not in text
        assert "allow_pickle=True" not in text


def test_package_is_typed():
    assert (SOURCE / "py.typed").exists()


def test_versions_go_in_step():
    root = SOURCE.parent.parent
    assert tocsin_monitor.__version__ == tocsin_bench.__version__ == tocsin.__version__
    for project in ("monitor", "bench"):
        assert f'"tocsin=={tocsin.__version__}"' in (root / project / "pyproject.toml").read_text()
    assert re.search(r"^version: (.*)$", (root / "CITATION.cff").read_text(), re.MULTILINE)[1] == tocsin.__version__
