import pytest

from perfvec.errors import ConfigError
from perfvec.model.config import ModelConfig, TrainingConfig, load_training_config
from perfvec.model.launch_input import LITTLE_S
from perfvec.model.layout import TYPICAL_PRICE, make_layout
from perfvec.resources import NUM_RESOURCES, RESOURCE_INDEX, RESOURCES


def write(tmp_path, text):
    path = tmp_path / "training.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_the_file_leaves_out_keeps_its_default(tmp_path):
    config = load_training_config(write(tmp_path, "epochs: 7\nlearning_rate: 1\nmodel:\n  encoder: lstm\n"))
    assert config == TrainingConfig(epochs=7, learning_rate=1.0, model=ModelConfig(encoder="lstm"))


def test_yaml_exponents_without_a_point_are_numbers(tmp_path):
    assert load_training_config(write(tmp_path, "learning_rate: 2e-3\n")).learning_rate == 0.002


def test_an_empty_file_is_the_default(tmp_path):
    assert load_training_config(write(tmp_path, "")) == TrainingConfig()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epoch: 7\n", "unknown settings: epoch;"),
        ("model:\n  width: 7\n", "unknown settings: width;"),
        ("epochs: many\n", "epochs"),
        ("learning_rate: fast\n", "learning_rate"),
        ("learning_rate: true\n", "learning_rate"),
        ("accelerator: tpu\n", "accelerator"),
        ("- 1\n", "not a mapping"),
        ("a: [\n", "cannot read"),
        ("epochs: 0\n", "epochs is 0; it must be above 0"),
        ("weight_decay: -1\n", "weight_decay is -1.0; it must be 0 or more"),
        ("validation_fraction: 2\n", "validation_fraction is 2.0; it must be from 0 to 1"),
        ("model:\n  hidden: 0\n", "hidden is 0"),
        ("model:\n  dropout: 1\n", "dropout is 1.0"),
        ("model:\n  token_gates: -1\n", "token_gates is -1"),
        ("model:\n  excess: -1\n", "excess is -1"),
        ("model:\n  landmarks: -1\n", "landmarks is -1"),
    ],
)
def test_mistakes_are_named(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message):
        load_training_config(write(tmp_path, text))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read training configuration .*nowhere\.yaml"):
        load_training_config(tmp_path / "nowhere.yaml")


def test_layout_divides_the_coordinates():
    layout = make_layout(ModelConfig(dim=2000, token_gates=6, excess=300, landmarks=50), ("l1_sectors", "odd"))
    left = 2000 - NUM_RESOURCES - 350 - 2 * 6
    assert (layout.launch_gates, layout.free_gates) == (left // NUM_RESOURCES, left % NUM_RESOURCES)
    assert layout.dim == 2000 == len(layout.names) == NUM_RESOURCES + layout.num_learned
    assert len(set(layout.names)) == 2000
    assert layout.names[RESOURCE_INDEX["dram_sectors"]] == "dram_sectors"
    assert layout.token_unit.tolist() == [0] * 6 + [1] * 6 + [2] * layout.free_gates
    # A unit that is no resource, and the instruction itself, cost like other issue.
    prices = layout.price[-layout.num_token_coordinates :].tolist()
    other = RESOURCE_INDEX["other_issue"]
    assert prices == [RESOURCE_INDEX["l1_sectors"]] * 6 + [other] * (6 + layout.free_gates)
    assert layout.price[: layout.launch_gates].tolist() == [0] * layout.launch_gates
    # An excess costs what the slower archetype's time does.
    excess = layout.names.index("launch:" + RESOURCES[-1].name + ":0") + layout.launch_gates - NUM_RESOURCES
    slower = layout.names[NUM_RESOURCES + excess].split(":")[1]
    assert RESOURCES[layout.price[excess]].name == f"time:{slower}:dram"
    assert layout.names.index("landmark:0") == NUM_RESOURCES + excess + 300
    assert (layout.price == TYPICAL_PRICE).sum() == 50
    assert (layout.little[[name.startswith("landmark:") for name in layout.names]] == LITTLE_S).all()


def test_resources_are_shared_by_the_unit_that_stands_for_them():
    layout = make_layout(ModelConfig(), ("dram_sectors", "l1_sectors"))
    shared = dict(zip(layout.names, layout.sharing_units.T.tolist(), strict=False))
    assert shared["dram_sectors"] == [0, -1, -1]
    assert shared["l1_sectors"] == shared["access_per_slot_256"] == [1, -1, -1]
    assert shared["issue_per_slot_16"] == [2, -1, -1]  # the instruction itself
    assert shared["launch"] == shared["work_groups"] == shared["fp64_issue"] == [-1, -1, -1]


def test_times_are_shared_by_what_causes_them():
    layout = make_layout(ModelConfig(), ("dram_sectors", "l1_sectors", "barriers"))
    shared = dict(zip(layout.names, layout.sharing_units.T.tolist(), strict=False))
    assert shared["time:nvidia-h200:dram"] == [0, 1, -1]  # by DRAM sectors, and if there are none by L1 sectors
    assert shared["time:nvidia-h200:barrier"] == [2, -1, -1]
    assert shared["time:nvidia-h200:issue"] == shared["time:nvidia-h200:tail"] == [3, -1, -1]
    assert shared["time:nvidia-h200:launch"] == shared["time:nvidia-h200:dispatch"] == [-1, -1, -1]


def test_too_few_coordinates_are_refused_with_the_number_that_suffices():
    with pytest.raises(ConfigError, match=f"set dim to {NUM_RESOURCES + 32} or more"):
        make_layout(ModelConfig(dim=NUM_RESOURCES, token_gates=6, excess=20), ("a", "b"))


def test_more_pairs_than_there_are_is_refused():
    with pytest.raises(ConfigError, match=r"excess is 5000; archs/excess\.json has 300 pairs"):
        make_layout(ModelConfig(dim=9000, excess=5000), ("a",)).price.sum()
