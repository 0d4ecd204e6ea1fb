import warnings
from dataclasses import replace

import numpy as np
import pytest
from google.protobuf import text_format

from perfvec.model import projector
from perfvec.model.config import ModelConfig, TrainingConfig
from perfvec.model.layout import make_layout
from perfvec.model.projector import DEVICES, PROGRAMS, write_projector
from perfvec.model.training import train
from perfvec.model.vectors import log_programs
from perfvec.resources import NUM_RESOURCES, RESOURCE_INDEX
from tests.model.synthetic_launches import UNITS, make_training_set

CONFIG = TrainingConfig(
    model=ModelConfig(encoder="pooled", hidden=16, launch_hidden=16), epochs=1, batch_launches=8, accelerator="cpu"
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    dataset = make_training_set(num_launches=12, num_families=4, num_devices=3, seed=3)
    return train(CONFIG, dataset, tmp_path_factory.mktemp("run")), dataset


def read(folder):
    """The vectors and tables as TensorBoard's own plugin finds and reads them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # its own
        from tensorboard.plugins.projector import metadata, projector_plugin
        from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
    config = text_format.Parse((folder / metadata.PROJECTOR_FILENAME).read_text(), ProjectorConfig())
    return {
        item.tensor_name: (
            projector_plugin._read_tensor_tsv_file(str(folder / item.tensor_path)),
            [line.split("\t") for line in (folder / item.metadata_path).read_text().splitlines()],
            tuple(item.tensor_shape),
        )
        for item in config.embeddings
    }


def test_the_projector_finds_the_vectors_and_what_they_are(trained, tmp_path):
    model, dataset = trained
    write_projector(tmp_path, model, dataset)
    found = read(tmp_path)
    assert set(found) == {PROGRAMS, DEVICES}
    vectors, table, shape = found[PROGRAMS]
    assert vectors.shape == shape == (12, model.encoder.layout.dim)
    np.testing.assert_allclose(
        vectors, log_programs(model.encode(dataset.launches), model.encoder.layout), rtol=1e-4, atol=1e-4
    )
    assert table == [
        ["launch", "suite", "family"],
        *map(list, zip([launch.name for launch in dataset.launches], dataset.suites, dataset.families, strict=True)),
    ]
    vectors, table, shape = found[DEVICES]
    np.testing.assert_allclose(vectors, np.log10(model.devices.vectors), atol=5.1e-4)  # five digits of -10 or less
    assert table == [["device", "kind"], ["device0", "real"], ["device1", "real"], ["device2", "real"]]


def test_of_many_launches_some_are_written_the_same_each_time_and_over_those_that_are_there(
    trained, tmp_path, monkeypatch
):
    model, dataset = trained
    monkeypatch.setattr(projector, "MOST_LAUNCHES", 5)
    write_projector(tmp_path, model, dataset)
    first = read(tmp_path)[PROGRAMS]
    write_projector(tmp_path, model, dataset)
    again = read(tmp_path)[PROGRAMS]
    assert len(first[1]) == 6 and first[1] == again[1]
    np.testing.assert_array_equal(first[0], again[0])
    assert len(list(tmp_path.iterdir())) == 5


def test_a_name_with_a_tab_or_a_line_break_does_not_break_the_table(trained, tmp_path):
    model, dataset = trained
    launches = (replace(dataset.launches[0], name="a\tb\nc"), *dataset.launches[1:])
    write_projector(tmp_path, model, replace(dataset, launches=launches))
    assert read(tmp_path)[PROGRAMS][1][1][0] == "a b c"


def test_programs_are_looked_at_in_units_of_counts_and_nanoseconds():
    layout = make_layout(ModelConfig(encoder="pooled"), UNITS)
    vectors = np.zeros((2, layout.dim))
    count, timed = RESOURCE_INDEX["fp32_issue"], RESOURCE_INDEX["time:nvidia-h200:dram"]
    gate = layout.names.index("launch:time:nvidia-h200:dram:0")
    vectors[1, count], vectors[1, timed], vectors[1, gate] = 999.0, 99e-9, 9e-9
    looked = log_programs(vectors, layout)
    assert (looked[0] == 0).all()
    assert looked[1, [count, timed, gate]] == pytest.approx([3.0, 2.0, 1.0])
    assert layout.little.shape == (layout.dim,) and (layout.little[:NUM_RESOURCES] > 0).all()
