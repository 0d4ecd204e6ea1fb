from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from perfvec.arch.space import DesignSpace, Parameter, sample_digest, sobol_points
from perfvec.arch.space_files import find_space, load_space_split, load_spaces, read_space
from perfvec.arch.timing.of_device import DRAM_EFFICIENCY
from perfvec.content import content_folder
from perfvec.errors import DeviceError

SPACE = """
[space]
name = "small"
title = "A small space"
base = "nvidia-h200"
constraints = ["memory.dram.bandwidth_bytes_per_s <= 0.5 * memory.l2.bandwidth_bytes_per_s"]

[[parameter]]
name = "memory.l2.bandwidth_bytes_per_s"
distribution = "uniform"
low = 5e12
high = 1e13

[[parameter]]
name = "memory.dram.bandwidth_bytes_per_s"
distribution = "log-uniform"
low = 1e12
high = 4e12

[[parameter]]
name = "timing.scheduler_policy"
distribution = "choice"
values = ["greedy-then-oldest", "round-robin"]
"""


def write(folder: Path, old: str = "", new: str = "") -> Path:
    assert old in SPACE
    path = folder / "small.toml"
    path.write_text(SPACE.replace(old, new, 1), encoding="utf-8")
    return path


def parameter(**fields) -> Parameter:
    return Parameter(name="x", **fields)


def test_distributions_by_hand():
    assert parameter(distribution="uniform", low=2, high=4).draw(0.25, {}) == 2.5
    assert parameter(distribution="log-uniform", low=1, high=100).draw(0.5, {}) == 10
    weighted = parameter(distribution="choice", values=("a", "b"), weights=(1, 3))
    assert [weighted.draw(u, {}) for u in (0.0, 0.24, 0.26, 0.999)] == ["a", "a", "b", "b"]
    assert parameter(distribution="product", times=("y", 3.0), over=(2.0,)).draw(0.0, {"y": 4.0}) == 6
    assert parameter(distribution="uniform", low=1, high=9, multiple_of=4).draw(0.7, {}) == 8  # 6.6 is nearer to 8
    assert parameter(distribution="uniform", low=0, high=1, multiple_of=4).draw(0.1, {}) == 4  # one multiple at least


def test_points_cover_each_interval_once():
    # A digital shift keeps the net: of 2^k points, each interval of length 2^-k in each coordinate holds one.
    points = sobol_points(["a", "b", "c"], 64, seed=5)
    for column in points.T:
        assert sorted(np.floor(column * 64).astype(int)) == list(range(64))
    assert np.array_equal(sobol_points(["a", "b", "c"], 32, seed=5), points[:32])
    assert not np.array_equal(sobol_points(["a", "b", "c"], 64, seed=6), points)


def test_a_sample_keeps_to_ranges_and_constraints_and_repeats_by_seed(tmp_path: Path):
    space = read_space(write(tmp_path))
    devices = space.sample(40)
    assert [item.number for item in devices] == list(range(40))
    for item in devices:
        memory = item.device.memory
        assert 5e12 <= memory.l2.bandwidth_bytes_per_s <= 1e13
        assert 1e12 <= memory.dram.bandwidth_bytes_per_s <= 0.5 * memory.l2.bandwidth_bytes_per_s
        assert item.device.compute.compute_units == 132
        assert item.config.dram_bytes_per_s == pytest.approx(DRAM_EFFICIENCY * memory.dram.bandwidth_bytes_per_s)
        assert item.config.scheduler_policy == item.values["timing.scheduler_policy"]
    assert {item.config.scheduler_policy for item in devices} == {"greedy-then-oldest", "round-robin"}
    assert sample_digest(space.sample(40)) == sample_digest(devices)
    assert sample_digest(space.sample(100)[:40]) == sample_digest(devices)
    assert sample_digest(space.sample(40, seed=1)) != sample_digest(devices)


def test_shipped_spaces_give_256_devices_each():
    spaces = load_spaces()
    assert {"gpu-2010-today", "around-h200"} <= spaces.keys()
    for space in spaces.values():
        devices = space.sample(256)
        assert len({item.config for item in devices}) == 256
    sizes = [item.device.compute.fp32_flops for item in spaces["gpu-2010-today"].sample(256)]
    assert min(sizes) < 2e11
    assert max(sizes) > 1e14


def test_the_shipped_split_is_fixed():
    split = load_space_split(find_space("gpu-2010-today"))
    training, held_out = ({item.number for item in part} for part in (split.training, split.held_out))
    assert len(training) >= 128
    assert len(held_out) >= 32
    assert not training & held_out


def test_a_split_of_another_space_is_refused(tmp_path: Path):
    splits = content_folder("archs") / "spaces" / "splits" / "gpu-2010-today.toml"
    (tmp_path / "small.toml").write_text(splits.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "spaces").mkdir()
    space = read_space(write(tmp_path / "spaces"))
    with pytest.raises(DeviceError, match="is about other devices than space 'small' gives now"):
        load_space_split(space, tmp_path)
    with pytest.raises(DeviceError, match="cannot read the split"):
        load_space_split(space, tmp_path / "spaces" / "none")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"uniform"', '"normal"', "parameter memory.l2.*distribution='normal'; allowed: log-uniform, uniform, choice"),
        ("low = 5e12", "low = 5e13", r"memory.l2.bandwidth.*low=5e\+13, high=1e\+13; allowed are finite.*low <= high"),
        ("low = 1e12", "low = -1e12", "memory.dram.*allowed are finite numbers over 0"),
        ("low = 5e12\n", "", "parameter memory.l2.*distribution 'uniform' needs low"),
        ('"memory.l2.bandwidth', '"memory.l3.bandwidth', "is no fact; allowed: memory.l2.bandwidth_bytes_per_s"),
        ('"timing.scheduler_policy"', '"timing.scheduler"', "is no fact; allowed: .*timing.schedulers"),
        ('"round-robin"', '"random"', "timing.scheduler_policy: 'random' in its range; allowed: greedy-then"),
        ('name = "timing.s', 'times = ["z"]\nname = "timing.s', "times has 'z'; allowed are parameters above it"),
        ("<= 0.5 * ", "< ", "cannot read constraint .*write NAME <= NUMBER"),
        ('constraints = ["memory.dram', 'constraints = ["memory.dr', r"no parameter 'memory.dr.bandwidth_bytes_per_s'"),
        ('base = "nvidia-h200"', "", "no parameter and no base for compute.compute_units"),
        ("values = [", "values = [] # [", "values is empty"),
        ("title", "titel", r"\[space\] has the unknown key 'titel'; allowed: title"),
        ("[space]", "[space", "cannot read design space"),
        ("low = 5e12", "low = []", "is malformed"),
        ('name = "small"', 'name = "large"', "describes 'large'; name the file large.toml"),
        ('"memory.dram.bandwidth_bytes_per_s"\ndis', '"memory.l2.bandwidth_bytes_per_s"\ndis', "stands there twice"),
    ],
)  # fmt: skip
def test_wrong_spaces_are_refused(tmp_path: Path, old: str, new: str, message: str):
    with pytest.raises(DeviceError, match=message) as raised:
        read_space(write(tmp_path, old, new))
    assert "small.toml" in str(raised.value)


def test_contradictions_name_the_device_and_the_field(tmp_path: Path):
    space = read_space(write(tmp_path, "<= 0.5 * memory.l2", ">= 0.1 * memory.l2"))
    assert len(space.sample(8)) == 8
    wide = read_space(write(tmp_path, "high = 4e12", "high = 2e13"))
    assert len(wide.sample(8)) == 8
    never = read_space(write(tmp_path, "<= 0.5 *", "<= 0.01 *"))
    with pytest.raises(DeviceError, match=re.escape("0 of 32768 points keep to the constraints memory.dram")):
        never.sample(1)
    latency = Parameter(name="memory.l2.latency_cycles", distribution="choice", values=(5.0,))
    contradicting = DesignSpace(name="s", title="", base="nvidia-h200", parameters=(latency,))
    with pytest.raises(DeviceError, match=r"space 's', device 0: l1.latency_cycles=34 is more than that of l2, 5"):
        contradicting.sample(1)


def test_unknown_spaces_and_numbers():
    with pytest.raises(DeviceError, match="no design space 'x'; allowed: around-h200, gpu-2010-today"):
        find_space("x")
    with pytest.raises(DeviceError, match="0 devices asked for; allowed is 1 or more"):
        find_space("around-h200").sample(0)
