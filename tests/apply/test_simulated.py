"""Devices of a design space, and shipped GPUs, as devices to train on."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from perfvec.apply.models import load_model
from perfvec.apply.simulated import PREFIX, SimulatedDevices
from perfvec.arch.datasheet import seconds_per_unit
from perfvec.arch.device import load_devices
from perfvec.arch.space_files import find_space, load_space_split
from perfvec.arch.timing.of_device import timing_config
from perfvec.content import content_folder
from perfvec.errors import DeviceError

SPACE = SimulatedDevices(space="gpu-2010-today")


def test_all_devices_by_number():
    assert [item.number for item in SPACE.devices] == list(range(len(SPACE.devices)))
    assert [item.device.name for item in SPACE.devices[:2]] == ["gpu-2010-today/0", "gpu-2010-today/1"]
    assert SPACE.configs == tuple(item.config for item in SPACE.devices)
    assert [item.number for item in SPACE.part("shipped")] == list(range(256, len(SPACE.devices)))


def test_shipped_gpus_are_as_their_files_have_them():
    shipped = {item.device.name: item for item in SPACE.part("shipped")}
    gpus = [device for device in load_devices(content_folder("archs")).values() if device.type == "gpu"]
    assert sorted(shipped) == sorted(PREFIX + device.name for device in gpus)
    for device in gpus:
        assert shipped[PREFIX + device.name].config == timing_config(device)
        np.testing.assert_array_equal(seconds_per_unit(shipped[PREFIX + device.name].device), seconds_per_unit(device))


def test_the_shipped_model_has_a_row_of_each():
    trained = load_model(None)
    for item in SPACE.part("shipped"):
        assert trained.simulated_twin(seconds_per_unit(item.device)) is not None, item.device.name


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
