from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from perfvec.errors import ConfigError
from perfvec.report.plots import plot_scatter

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
