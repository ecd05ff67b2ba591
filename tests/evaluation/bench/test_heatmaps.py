"""The colours of heat maps say how much."""

import pytest
from matplotlib.figure import Figure

from tocsin_bench.report.figures import draw_figures
from tocsin_bench.results import BenchmarkResults, MethodRun


@pytest.fixture
def drawn(monkeypatch):
    """The figures, by the names of the files that they would be written to."""
    drawn = {}
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **more: drawn.update({path.name: figure}))
    return drawn


def run(dataset, f1, error, features=1):
    metrics = {"point_adjusted_f1": f1, "point_adjusted_calibration_error": error}
    return MethodRun(f"{dataset}-{features}", dataset, "embedded-52", "w1-acas", features=features, metrics=metrics)


def scales_of(figure):
    return {axes.get_ylabel(): axes for axes in figure.axes if axes.get_label() == "<colorbar>"}


def test_every_metric_that_is_known_has_a_scale_of_its_own(tmp_path, drawn):
    with BenchmarkResults(tmp_path / "results") as results:
        results.add([run("NEK", 0.9, 0.01), run("NAB", 0.4, 0.03), run("TAO", 0.7, 0.02, features=3)])
        draw_figures(results, tmp_path)
    scales = scales_of(drawn["heatmaps-univariate.png"])
    assert list(scales) == ["PA-F1 (more is better)", "CalErr (less is better)"]
    f1, error = scales.values()
    assert f1.get_ylim() == pytest.approx((0.4, 0.9))
    assert error.get_ylim() == pytest.approx((0.01, 0.03))
    # A single value has a scale, too, with itself on it.
    for scale, value in zip(scales_of(drawn["heatmaps-multivariate.png"]).values(), (0.7, 0.02), strict=True):
        low, high = scale.get_ylim()
        assert low < value < high
