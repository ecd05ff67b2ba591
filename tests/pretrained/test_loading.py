"""Libraries and weights that are not there, or not what they should be."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pretrained.conftest import FAMILIES
from tocsin.adapters.chronos import ChronosForecaster
from tocsin.adapters.granite import FlowStateForecaster, TTMForecaster
from tocsin.adapters.tirex import TiRexForecaster
from tocsin.forecasting.embedded.weights import WeightsError

# Tested once, in test_models.py.
pytestmark = pytest.mark.filterwarnings("ignore::tocsin.adapters.tirex.LicenceWarning")

KINDS = [ChronosForecaster, FlowStateForecaster, TTMForecaster, TiRexForecaster]
every_kind = pytest.mark.parametrize("kind", KINDS)


def run(script):
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def test_importing_the_adapters_loads_no_library():
    loaded = {name.split(".")[0] for name in run("import sys, tocsin.adapters; print(*sys.modules)").split()}
    assert not loaded & {"torch", "transformers", "chronos", "tsfm_public", "tirex", "statsforecast", "pandas"}


@pytest.mark.parametrize("missing", ["library", "torch"])
@every_kind
def test_says_which_extra_is_missing(kind, missing):
    library = kind.package.split(".")[0] if missing == "library" else "torch"
    output = run(
        f"import sys; sys.modules[{library!r}] = None\n"
        f"from {kind.__module__} import {kind.__name__}\n"
        f"try: {kind.__name__}('some/model')\n"
        "except ImportError as error: print(error)"
    )
    assert output.startswith(f"{kind.__name__} needs ")
    assert f"pip install '{kind.extra}'" in output


@every_kind
@pytest.mark.parametrize("model", ["/no/such/folder", "folder", "./folder", "~/no-such-folder", "a/b/c", ""])
def test_says_that_there_is_no_such_folder(kind, model):
    with pytest.raises(WeightsError, match=r"^model must be a folder .*there is no such folder$") as error:
        kind(model)
    assert repr(model) in str(error.value)


@every_kind
def test_a_path_is_never_looked_for_on_the_hub(kind):
    with pytest.raises(WeightsError, match="there is no such folder"):
        kind(Path("some/model"))


@every_kind
def test_says_that_the_hub_gave_nothing(kind):
    with pytest.raises(
        WeightsError, match=r"^model='some/model' is not a local folder, and could not be fetched from the hub: "
    ):
        kind("some/model", revision="main")


@every_kind
def test_says_which_file_a_folder_lacks(kind, tmp_path):
    with pytest.raises(WeightsError, match=f"got '{tmp_path}': it holds no {' or '.join(kind.files[0])}$"):
        kind(tmp_path)
    for group in kind.files[:-1]:
        (tmp_path / group[0]).write_text("{}")
    with pytest.raises(WeightsError, match=f"it holds no {' or '.join(kind.files[-1])}$"):
        kind(tmp_path)


@every_kind
@pytest.mark.parametrize("model", [None, 3, b"model"])
def test_refuses_what_is_no_model(kind, model):
    with pytest.raises(TypeError, match=r"^model must be a folder .*, got "):
        kind(model)


def test_damaged_weights_are_an_error(family, folders, tmp_path):
    for file in folders(family).iterdir():
        content = file.read_bytes()
        (tmp_path / file.name).write_bytes(content[: len(content) // 2] if file.suffix != ".json" else content)
    with pytest.raises(WeightsError, match=f"^model='{tmp_path}' could not be loaded: "):
        FAMILIES[family].kind(tmp_path)


def test_damaged_settings_are_an_error(family, folders, tmp_path):
    for file in folders(family).iterdir():
        (tmp_path / file.name).write_bytes(b"{" if file.suffix == ".json" else file.read_bytes()[:100])
    with pytest.raises(WeightsError, match=f"^model='{tmp_path}' could not be loaded: "):
        FAMILIES[family].kind(tmp_path)


@pytest.mark.parametrize(
    ("kind", "other"),
    [(ChronosForecaster, "ttm"), (TTMForecaster, "flowstate"), (FlowStateForecaster, "ttm"), (TTMForecaster, "bolt")],
)
def test_models_of_another_kind_are_an_error(kind, other, folders):
    with pytest.raises(WeightsError, match="could not be loaded"):
        kind(folders(other))


@pytest.mark.parametrize("family", ["ttm", "flowstate"])
def test_weights_that_leave_some_to_chance_are_an_error(family, folders, tmp_path):
    from safetensors.torch import load_file, save_file

    source = folders(family)
    weights = load_file(source / "model.safetensors")
    weights.pop(sorted(weights)[0])
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    (tmp_path / "config.json").write_bytes((source / "config.json").read_bytes())
    with pytest.raises(WeightsError, match=r"these are not the weights of a .*, or not all of them$"):
        FAMILIES[family].kind(tmp_path)


def test_models_without_a_median_are_an_error(folders, tmp_path):
    from chronos.chronos_bolt import ChronosBoltModelForForecasting
    from transformers import T5Config

    settings = json.loads((folders("bolt") / "config.json").read_text())
    settings["chronos_config"]["quantiles"] = [0.1, 0.9]
    ChronosBoltModelForForecasting(T5Config(**settings)).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"^model must forecast the median, got .* with the levels \(0.1, 0.9\)$"):
        ChronosForecaster(tmp_path)


def test_revisions_are_for_the_hub(make):
    with pytest.raises(ValueError, match=r"^revision must be None for a model in a folder, got 'main'$"):
        make(revision="main")
    with pytest.raises(TypeError, match=r"^revision must be a name, or None, got 3$"):
        make(revision=3)


def test_a_folder_may_be_named_in_any_way(family, folders, monkeypatch):
    folder = folders(family)
    kind, _, options, _ = FAMILIES[family]
    monkeypatch.chdir(folder.parent)
    for given in (folder, str(folder), folder.name, f"./{folder.name}"):
        assert kind(given, **options).parameters()["model"] == str(given)


def test_everybodys_logging_stays_as_it_is(make):
    root = logging.getLogger()
    before = root.level, root.handlers[:]
    make()
    assert (root.level, root.handlers) == before


def test_the_import_of_a_library_leaves_logging_alone():
    script = (
        "import logging; from tocsin.adapters.base import import_library; from tocsin.adapters import TTMForecaster\n"
        "import_library('tsfm_public', TTMForecaster)\n"
        "print(logging.getLogger().handlers, logging.getLogger().level)"
    )
    assert run(script).split() == ["[]", "30"]
