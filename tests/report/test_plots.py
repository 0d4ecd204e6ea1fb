from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from perfvec.errors import ConfigError
from perfvec.report.plots import Map, plot_maps, plot_scatter

pytest.importorskip("matplotlib", reason="plots need matplotlib: pip install 'perfvec[plots]'")


def test_a_scatter_is_written_in_the_format_of_its_suffix(tmp_path: Path):
    times = np.array([1e-6, 1e-5, 1e-4])
    plot_scatter(tmp_path / "x.png", times, {"one": times, "other": 2 * times}, title="both")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    plot_scatter(tmp_path / "x.svg", times, {"one": times}, title="a title")
    assert "<svg" in (tmp_path / "x.svg").read_text()
    with pytest.raises(ConfigError, match=r"cannot plot to .*x.txt; name it .png, .svg or .pdf"):
        plot_scatter(tmp_path / "x.txt", times, {"one": times}, title="")
    assert not (tmp_path / "x.txt").exists()


def test_maps_are_drawn_with_as_many_groups_as_there_are_suites(tmp_path: Path):
    groups = {f"group {number}": np.array([[number, 0.0], [number, 1.0]]) for number in range(14)}
    drawn = Map(title="t", axes=("x", "y"), groups=groups, names={"here": (1.0, 0.5)}, background="group 0")
    plot_maps(tmp_path / "map.svg", [drawn, drawn])
    text = (tmp_path / "map.svg").read_text()
    assert text.count("<!-- group 13 (2) -->") == 2 and text.count("<!-- here -->") == 2
    assert text.count("#c0c0c0") >= 2
    with pytest.raises(ConfigError, match=r"name it .png, .svg or .pdf"):
        plot_maps(tmp_path / "map.txt", [drawn])
