"""Devices of a design space as devices to train on."""

from __future__ import annotations

import pickle

import pytest

from perfvec.apply.simulated import SimulatedDevices
from perfvec.arch.space import sample_digest
from perfvec.arch.space_files import find_space, load_space_split
from perfvec.errors import DeviceError

SPACE = SimulatedDevices(space="gpu-2010-today")


def test_all_devices_by_number():
    assert [item.number for item in SPACE.devices] == list(range(256))
    assert [item.device.name for item in SPACE.devices[:2]] == ["gpu-2010-today/0", "gpu-2010-today/1"]
    assert SPACE.configs == tuple(item.config for item in SPACE.devices)
    assert SPACE.digest == sample_digest(SPACE.devices)


def test_the_parts_are_those_of_the_split():
    split = load_space_split(find_space("gpu-2010-today"))
    training, held_out = SPACE.part("training"), SPACE.part("held-out")
    assert [item.number for item in training] == [item.number for item in split.training]
    assert [item.number for item in held_out] == [item.number for item in split.held_out]
    assert len(training) == 192 and len(held_out) == 64
    assert SPACE.part("training", 5) == training[:5]
    assert SPACE.part("held-out", 0) == held_out


def test_another_process_has_the_same_devices():
    again: SimulatedDevices = pickle.loads(pickle.dumps(SPACE))
    assert again == SPACE and again.configs == SPACE.configs


@pytest.mark.parametrize(
    ("name", "message"),
    [("gpu-1910", "no design space 'gpu-1910'; allowed: "), ("around-h200", "cannot read the split .*around-h200")],
)
def test_a_space_needs_a_file_and_a_split(name: str, message: str):
    with pytest.raises(DeviceError, match=message):
        SimulatedDevices(space=name).part("training")
