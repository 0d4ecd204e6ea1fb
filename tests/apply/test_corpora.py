"""What a corpus' launches are like: figures of a trace against arithmetic written out, and distributions of samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfvec.apply.corpora import GENERATED, REAL, Distributions, distributions
from perfvec.apply.corpus_tables import distribution_panels, distribution_table
from perfvec.apply.launch_features import CLASSES, FEATURES, features_of
from perfvec.arch.device import find_device
from perfvec.corpus.generated import build_corpus
from perfvec.errors import ConfigError
from perfvec.program.tracer import trace_launch
from perfvec.report.plots import Panel, plot_histograms
from perfvec.trace_data import OPCODE_CLASSES
from tests.program.launching import make_launch

pytestmark = pytest.mark.usefixtures("front_end")


def test_figures_of_a_launch():
    """b[i] = fma(a[i], a[i], 2) by half of the lanes: 2 FLOP for each 8 bytes that they move."""
    launch = make_launch(
        """kernel void k(global const float *a, global float *b) {
            int i = get_global_id(0);
            if (get_local_id(0) < 16) b[i] = fma(a[i], a[i], 2.0f); }""",
        "buffer:float32:256",
        "buffer:float32:256",
        global_size=256,
        local_size=32,
    )
    found = features_of(trace_launch(launch))
    assert found.arithmetic_intensity == pytest.approx(2 / 8)
    assert found.operations_per_byte >= found.arithmetic_intensity
    assert found.sectors_per_access == pytest.approx(16 * 4 / 32)
    assert found.work_items == 256
    assert found.instructions == pytest.approx(8 * found.instructions_per_sub_group)
    assert 0.1 < found.divergence < 0.5  # half of the lanes, in some of the instructions
    assert sum(found.class_shares.values()) == pytest.approx(1.0)
    assert found.class_shares["memory"] * found.instructions == pytest.approx(8 * 2)
    assert (found.atomic_share, found.local_share, found.class_shares["barriers"]) == (0, 0, 0)


def test_figures_of_integers_atomics_and_local_memory():
    """Two local accesses and an atomic a sub-group; all lanes on one address, which is one sector."""
    launch = make_launch(
        """kernel void k(global uint *a) { local uint s[32]; int l = get_local_id(0); s[l] = l * 3u + 1u;
            barrier(CLK_LOCAL_MEM_FENCE); atomic_add(a, s[31 - l]); }""",
        "buffer:uint32:1:constant(0)",
    )
    found = features_of(trace_launch(launch))
    assert found.arithmetic_intensity == 0
    assert found.operations_per_byte > 0
    assert found.sectors_per_access == 1
    assert found.atomic_share * found.instructions == pytest.approx(2)
    assert found.class_shares["barriers"] * found.instructions == pytest.approx(2)
    assert found.local_share * found.instructions == pytest.approx(4)
    assert found.divergence == 0


def test_every_class_of_instructions_is_in_one_group():
    members = [name for names in CLASSES.values() for name in names]
    assert len(members) == len(set(members))
    assert set(OPCODE_CLASSES) - set(members) == {"sub_group", "other"}


@pytest.fixture(scope="module")
def found() -> Distributions:
    corpus = build_corpus(6, [find_device("nvidia-h200")], launches_per_kernel=1, seed=5)
    return distributions(corpus, sample=4)


def test_distributions_beside_those_of_real_kernels(found: Distributions):
    assert [len(found.features[source]) for source in (GENERATED, REAL)] == [4, 4]
    record = found.record()
    for source in (GENERATED, REAL):
        part = record[source]
        assert isinstance(part, dict)
        assert part["launches"] == 4
        assert set(part["quantiles"]) == set(FEATURES)
        for feature, quantiles in part["quantiles"].items():
            values = sorted(found.values(source, feature))
            assert list(quantiles.values()) == sorted(quantiles.values())
            assert values[0] <= quantiles["p5"] <= quantiles["p95"] <= values[-1]
    table = distribution_table(found)
    assert len(table.rows) == len(FEATURES) + len(CLASSES)


def test_distributions_as_a_plot(found: Distributions, tmp_path: Path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (pip install 'perfvec[plots]')")
    path = tmp_path / "features.png"
    plot_histograms(path, distribution_panels(found))
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 20_000
    with pytest.raises(ConfigError, match=r"name it \.png, \.svg or \.pdf"):
        plot_histograms(tmp_path / "features.xyz", distribution_panels(found))
    assert not (tmp_path / "features.xyz").exists()
    plot_histograms(tmp_path / "zeros.svg", [Panel(title="zeros", values={"a": [0.0, 0.0]}, is_logarithmic=True)])
    assert "zeros" not in {item.name for item in tmp_path.glob(".*")}


def test_a_plot_without_matplotlib(found: Distributions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(ConfigError, match=r"pip install 'perfvec\[plots\]'"):
        plot_histograms(tmp_path / "features.png", distribution_panels(found))
