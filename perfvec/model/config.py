"""Settings of the model and its training: frozen records, read from YAML."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, final

from perfvec.errors import ConfigError


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Shape of the model.

    Attributes:
        encoder: Name of the token encoder: `conv`, `lstm`, `pooled` or `transformer`.
        dim: Coordinates of a vector, the counted ones included.
        token_gates: Gates per unit of an instruction; what is left of `dim` gates the launch's counted resources.
        hidden: Width of the token encoder.
        layers: Its layers.
        excess: Pairs of archetypes; how much longer a launch takes on one than on the other is a coordinate.
        landmarks: Typical launches among which a launch's typical time is divided by how near it is to each.
        launch_hidden: Width of the network that gates the launch's counted resources.
        straight_gates: Whether these gates see the launch's log times on archetypes beside the network, too: a gate
            that compares two of them is one weight for each.
        dropout: Share of hidden values that training drops.
    """

    encoder: str = "conv"
    dim: int = 1536
    excess: int = 0
    landmarks: int = 0
    token_gates: int = 6
    hidden: int = 64
    layers: int = 2
    launch_hidden: int = 64
    straight_gates: bool = False
    dropout: float = 0.2

    def __post_init__(self) -> None:
        for name in ("dim", "hidden", "layers", "launch_hidden"):
            if getattr(self, name) < 1:
                raise ConfigError(f"model setting {name} is {getattr(self, name)}; it must be 1 or more")
        for name in ("token_gates", "excess", "landmarks"):
            if getattr(self, name) < 0:
                raise ConfigError(f"model setting {name} is {getattr(self, name)}; it must be 0 or more")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"model setting dropout is {self.dropout}; it must be from 0 to below 1")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """How the model is trained.

    Attributes:
        model: Shape of the model.
        seed: Seed of initial weights, split, batches and sampled windows.
        epochs: Most passes over the launches.
        patience: Passes without a better validation loss after which training stops.
        batch_launches: Launches of a step.
        windows_per_launch: Most windows of a launch in a step; drawn anew each time, without bias.
        learning_rate: Largest step of the networks.
        device_learning_rate: Largest step of the device vectors.
        weight_decay: AdamW's decay of the networks.
        gradient_clip: Largest norm of the gradient.
        warmup: Share of all steps over which the learning rate rises.
        huber_delta: Log ratio beyond which the loss is linear.
        typical_spread: Relative spread at which a measurement counts half.
        family_balance: 0 counts each launch alike, 1 each family.
        profile_noise: Standard deviation of the noise on the normalised launch profile while training.
        counted_prior: Standard deviation, in log, of a counted device coordinate around its datasheet.
        shared_prior: The same of the correction that all devices share.
        learned_prior: Standard deviation, before softplus, of a device's own learned coordinate around the shared one.
        mixed_prior: The same of what a standard deviation of the datasheet's mix adds to it.
        prior_weight: Weight of these priors against the mean loss of a measurement.
        datasheet_weight: Weight of the loss of the same launches with vectors from the datasheets alone.
        simulated_weight: What all simulated devices count together against all real ones.
        validation_fraction: Share of the families that are held out to stop early. 0 trains on all, and so does a
            share of fewer than three families; then the last pass counts.
        accelerator: Where to train.
        precision: Of the networks; sums are always in double precision.
    """

    model: ModelConfig = field(default_factory=ModelConfig)
    seed: int = 0
    epochs: int = 120
    patience: int = 60
    batch_launches: int = 16
    windows_per_launch: int = 16
    learning_rate: float = 2e-3
    device_learning_rate: float = 5e-2
    weight_decay: float = 1e-2
    gradient_clip: float = 1.0
    warmup: float = 0.05
    huber_delta: float = 0.5
    typical_spread: float = 0.1
    family_balance: float = 0.5
    profile_noise: float = 0.15
    counted_prior: float = 1.0
    shared_prior: float = 1.0
    learned_prior: float = 1.0
    mixed_prior: float = 0.1
    prior_weight: float = 1e-5
    datasheet_weight: float = 0.3
    simulated_weight: float = 0.5
    validation_fraction: float = 0.1
    accelerator: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["32-true", "bf16-mixed"] = "32-true"

    def __post_init__(self) -> None:
        positive = (
            "epochs patience batch_launches windows_per_launch learning_rate device_learning_rate gradient_clip "
            "huber_delta typical_spread counted_prior shared_prior learned_prior mixed_prior"
        )
        for name in positive.split():
            if getattr(self, name) <= 0:
                raise ConfigError(f"training setting {name} is {getattr(self, name)}; it must be above 0")
        for name in ("weight_decay", "profile_noise", "prior_weight", "datasheet_weight", "simulated_weight"):
            if getattr(self, name) < 0:
                raise ConfigError(f"training setting {name} is {getattr(self, name)}; it must be 0 or more")
        for name in ("warmup", "validation_fraction", "family_balance"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"training setting {name} is {getattr(self, name)}; it must be from 0 to 1")


def load_training_config(path: str | Path) -> TrainingConfig:
    """Read a training configuration from a YAML file. What the file leaves out keeps its default.

    Raises:
        ConfigError: The file is missing or no YAML mapping, or a key or value is not allowed; the message names it.
    """
    import yaml

    try:
        values = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"cannot read training configuration {path}: {error}") from error
    return training_config({} if values is None else values, where=str(path))


def training_config(values: object, *, where: str) -> TrainingConfig:
    """Make a training configuration from nested mappings.

    Args:
        values: Setting names and values, as read from YAML or JSON.
        where: What to call them in messages.

    Raises:
        ConfigError: A key or value is not allowed.
    """
    import dacite

    if not isinstance(values, dict):
        raise ConfigError(f"{where} holds {type(values).__name__}, not a mapping of setting names to values")
    try:
        # YAML reads `1` and `2e-3` as int and str; both are meant as numbers where a number is due.
        return dacite.from_dict(TrainingConfig, values, dacite.Config(strict=True, type_hooks={float: _as_float}))
    except dacite.UnexpectedDataError as error:
        keys = ", ".join(sorted(map(str, error.keys)))
        raise ConfigError(f"{where} has unknown settings: {keys}; see TrainingConfig for the ones there are") from error
    except dacite.DaciteError as error:
        raise ConfigError(f"{where}: {error}") from error


def _as_float(value: object) -> object:
    """The number that a YAML scalar stands for; text, which dacite refuses for a number, where it stands for none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return str(value)
    try:
        return float(value)
    except ValueError:
        return value
