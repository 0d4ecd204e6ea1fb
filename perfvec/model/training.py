"""Training: networks and device vectors together, from measured times on all devices at once.

Legend: N launch, M device, D vector.
"""

# ruff: noqa: N815  (fields that are tensors carry their axes)

from __future__ import annotations

import json
import logging
import math
import pickle
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np
import pytorch_lightning as lightning
import torch
from pytorch_lightning.callbacks import Callback, EarlyStopping, ModelCheckpoint
from pytorch_lightning.loggers import TensorBoardLogger
from torch import nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel

from perfvec.errors import ConfigError
from perfvec.files import whole_file
from perfvec.model.batching import LaunchBatch, PackedLaunches
from perfvec.model.device_rows import fit_rows
from perfvec.model.devices import DeviceBank
from perfvec.model.program_encoder import ProgramEncoder
from perfvec.model.projector import write_projector
from perfvec.model.training_set import TrainingSet, split_families
from perfvec.model.weights import TrainedModel
from perfvec.model.window_sampling import WindowSampler
from perfvec.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from pytorch_lightning.utilities.types import OptimizerLRScheduler
    from torch import Tensor

    from perfvec.model.config import TrainingConfig
    from perfvec.model.devices import DeviceKind

logger = logging.getLogger(__name__)

_RUN_FILE = "run.json"
_LOGS = "logs"
_MONITOR = "validation_loss"
_CHECKPOINTS = 40
# What Lightning says while it does what it was asked for.
_LIGHTNING_WARNINGS: tuple[tuple[str, type[Warning]], ...] = (
    ("Checkpoint directory .* is not empty", UserWarning),  # going on in such a folder is what resuming means
    (r"`isinstance\(treespec, LeafSpec\)` is deprecated", FutureWarning),  # its own use of PyTorch's trees
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingBatch:
    """Some launches with their measurements.

    Attributes:
        launches: What the encoder sees.
        log_times_NM: Log of the measured seconds; 0 where there is none.
        weight_NM: How much each measurement counts; 0 where there is none.
    """

    launches: LaunchBatch
    log_times_NM: Tensor
    weight_NM: Tensor


@final
class BatchStream:
    """The batches of one pass, made as they are asked for. An iterable of our own: workers would copy all launches."""

    def __init__(
        self,
        dataset: TrainingSet,
        config: TrainingConfig,
        weights: NDArray[np.float64],
        *,
        is_shuffled: bool,
        device: torch.device,
    ) -> None:
        """Prepare to make batches.

        Args:
            dataset: Launches and times.
            config: Batch size, windows and seed.
            weights: Weight of each measurement, `(N, M)`.
            is_shuffled: Draw order and windows anew for each `epoch`; else they are the same each time.
            device: Where batches are to be made.
        """
        self.config = config
        self.is_shuffled = is_shuffled
        self.epoch = 0
        self._packed = PackedLaunches(dataset.launches, device=device)
        self._sampler = WindowSampler(
            self._packed.window_weight,
            self._packed.window_units,
            self._packed.launch_window,
            config.windows_per_launch,
        )
        times = np.where(np.isnan(dataset.times), 1.0, dataset.times)
        self._log_times_NM = torch.from_numpy(np.log(times)).to(device)
        self._weight_NM = torch.from_numpy(weights).to(device)

    def __len__(self) -> int:
        return math.ceil(len(self._packed) / self.config.batch_launches)

    def __iter__(self) -> Iterator[TrainingBatch]:
        rng = np.random.default_rng((self.config.seed, self.epoch + 1 if self.is_shuffled else 0))
        order = rng.permutation(len(self._packed)) if self.is_shuffled else np.arange(len(self._packed))
        for rows in np.array_split(order, len(self)):
            place = torch.from_numpy(rows).to(self._packed.device)
            yield TrainingBatch(
                launches=self._packed.batch(rows, self._sampler.draw(rows, rng)),
                log_times_NM=self._log_times_NM[place],
                weight_NM=self._weight_NM[place],
            )


@final
class LaunchData(lightning.LightningDataModule):
    """Training and validation launches, split by kernel family."""

    def __init__(self, dataset: TrainingSet, config: TrainingConfig) -> None:
        super().__init__()
        self.config = config
        train_rows, validation_rows = split_families(
            dataset.families, fraction=config.validation_fraction, seed=config.seed
        )
        weights = dataset.weights(
            typical_spread=config.typical_spread,
            family_balance=config.family_balance,
            simulated_weight=config.simulated_weight,
        )
        self.train_set = dataset.subset(train_rows)
        device = torch.device(accelerator(config))
        self._training = BatchStream(self.train_set, config, weights[train_rows], is_shuffled=True, device=device)
        self.has_validation = len(validation_rows) > 0 and bool(weights[validation_rows].any())
        self.validation_set = dataset.subset(validation_rows) if self.has_validation else self.train_set
        self._validation = (
            BatchStream(self.validation_set, config, weights[validation_rows], is_shuffled=False, device=device)
            if self.has_validation
            else ()
        )

    def train_dataloader(self) -> BatchStream:
        """Called before each pass, so that order and windows follow from seed and epoch, after a restart too."""
        self._training.epoch = self.trainer.current_epoch if self.trainer is not None else 0
        return self._training

    def val_dataloader(self) -> BatchStream | tuple[()]:
        """The same batches each time; none where there is no family to spare."""
        return self._validation

    def transfer_batch_to_device(
        self,
        batch: TrainingBatch,
        device: torch.device,  # noqa: ARG002
        dataloader_idx: int,  # noqa: ARG002
    ) -> TrainingBatch:
        """As it is: batches are made where they are needed."""
        return batch


def accelerator(config: TrainingConfig) -> str:
    """`cuda` or `cpu`, whichever the configuration asks for or there is."""
    if config.accelerator != "auto":
        return config.accelerator
    return "cuda" if torch.cuda.is_available() else "cpu"


@final
class Network(nn.Module):
    """What is trained: encoder and device vectors together."""

    def __init__(self, encoder: ProgramEncoder, bank: DeviceBank) -> None:
        super().__init__()
        self.encoder = encoder
        self.bank = bank


@final
class TrainingModule(lightning.LightningModule):
    """Encoder and device vectors under one loss.

    Beside the weights it keeps their running average over about the last tenth of the steps. Validation and the
    finished model use the average: a few held-out families judge single passes by chance.
    """

    datasheet_M: Tensor

    def __init__(self, network: Network, config: TrainingConfig, kinds: Sequence[DeviceKind]) -> None:
        super().__init__()
        of_kind = "simulated" if "simulated" in kinds else "real"
        is_judged = torch.tensor([kind == of_kind for kind in kinds], dtype=torch.float64)
        self.register_buffer("datasheet_M", is_judged, persistent=False)
        self.network = network
        self.averaged = AveragedModel(network, avg_fn=_average)
        self.config = config

    @property
    def finished(self) -> Network:
        """The averaged weights."""
        return cast("Network", self.averaged.module)

    def log_times(self, program_ND: Tensor, device_MD: Tensor) -> Tensor:
        """Log of the predicted seconds, (N, M), float64."""
        with torch.autocast(self.device.type, enabled=False):
            return torch.log(program_ND @ device_MD.T)

    def on_train_epoch_start(self) -> None:
        """Chance within a pass follows from its number, so that a resumed run goes on as it would have."""
        torch.manual_seed(self.config.seed * 100_003 + self.current_epoch)

    def on_train_batch_end(self, outputs: object, batch: TrainingBatch, batch_idx: int) -> None:  # noqa: ARG002
        """Move the average."""
        self.averaged.update_parameters(self.network)

    def training_step(self, batch: TrainingBatch, batch_idx: int) -> Tensor:  # noqa: ARG002
        """Weighted loss of a batch plus the priors of the device vectors."""
        bank = self.network.bank
        program_ND = self.network.encoder(batch.launches, self.config.profile_noise)
        data_loss = self._data_loss(batch, self.log_times(program_ND, bank()))
        # The same launches as if no device had been measured, so that a datasheet alone gives a useful vector. Where
        # there are simulated devices, they teach that: there are many, and nothing but their facts tells them apart.
        datasheet_loss = self._data_loss(batch, self.log_times(program_ND, bank.without_own()), self.datasheet_M)
        prior = bank.prior(
            counted=self.config.counted_prior,
            shared=self.config.shared_prior,
            learned=self.config.learned_prior,
            mixed=self.config.mixed_prior,
        )
        self._log("training_loss", data_loss, batch)
        self._log("datasheet_loss", datasheet_loss, batch)
        self._log("prior", prior, batch)
        return data_loss + self.config.datasheet_weight * datasheet_loss + self.config.prior_weight * prior

    def validation_step(self, batch: TrainingBatch, batch_idx: int) -> None:  # noqa: ARG002
        """Weighted loss and mean absolute log ratio of a batch of unseen families."""
        network = self.finished
        log_times_NM = self.log_times(network.encoder(batch.launches), network.bank())
        self._log(_MONITOR, self._data_loss(batch, log_times_NM), batch)
        errors_NM = (log_times_NM - batch.log_times_NM).abs() * (batch.weight_NM > 0)
        self._log("validation_log_error", errors_NM.sum() / (batch.weight_NM > 0).sum().clamp(min=1), batch)

    def _data_loss(self, batch: TrainingBatch, log_times_NM: Tensor, device_M: Tensor | None = None) -> Tensor:
        weight_NM = batch.weight_NM if device_M is None else batch.weight_NM * device_M
        loss_NM = functional.huber_loss(
            log_times_NM, batch.log_times_NM, reduction="none", delta=self.config.huber_delta
        )
        return (loss_NM * weight_NM).sum() / weight_NM.sum().clamp(min=1e-12)

    def _log(self, name: str, value: Tensor, batch: TrainingBatch) -> None:
        self.log(name, value.detach().float(), on_step=False, on_epoch=True, batch_size=len(batch.log_times_NM))

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """AdamW with a step of its own for the device vectors; warm-up, then a cosine to a hundredth."""
        config, bank = self.config, self.network.bank
        matrices = [p for p in self.network.encoder.parameters() if p.ndim > 1]
        others = [p for p in self.network.encoder.parameters() if p.ndim <= 1]
        groups = [
            {"params": matrices, "weight_decay": config.weight_decay, "lr": config.learning_rate},
            {"params": others, "weight_decay": 0.0, "lr": config.learning_rate},
            # What all devices share moves as the networks do; what one has to itself, faster. The prior is in the loss.
            {"params": bank.shared_parameters(), "weight_decay": 0.0, "lr": config.learning_rate},
            {"params": bank.own_parameters(), "weight_decay": 0.0, "lr": config.device_learning_rate},
        ]
        optimizer = torch.optim.AdamW([group for group in groups if group["params"]], betas=(0.9, 0.98))
        total = max(int(self.trainer.estimated_stepping_batches), 1)
        warmup = config.warmup * total

        def factor(step: int) -> float:
            rise = min(1.0, (step + 1) / (warmup + 1))
            return rise * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(step / total, 1.0))))

        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


def _average(averaged: Tensor, current: Tensor, num_averaged: Tensor | int) -> Tensor:
    """A running average that forgets what is older than about a ninth of the steps so far."""
    return averaged + (current - averaged) * 9.0 / (num_averaged + 10.0)


def train(config: TrainingConfig, dataset: TrainingSet, out_dir: str | Path) -> TrainedModel:
    """Train a model. Called again on a folder where the same training was broken off, it goes on there.

    Args:
        config: How to train.
        dataset: Launches, times and devices.
        out_dir: Folder for checkpoints and TensorBoard logs; made if it does not exist.

    Returns:
        The model of the pass with the least validation loss, or of the last where there is no validation.

    Raises:
        ConfigError: The folder holds another training, or an encoder or a size is not allowed.
    """
    folder = Path(out_dir)
    _claim_folder(folder, config, dataset)
    # With several GPUs PyTorch warns unless it is told which of them to leave as they were.
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(config.seed)
        schema = dataset.launches[0].schema
        data = LaunchData(dataset, config)
        encoder = ProgramEncoder(schema, config.model)
        encoder.fit_inputs(data.train_set.launches, seed=config.seed)
        network = Network(encoder, DeviceBank(dataset.seconds_per_unit, encoder.layout))
        module = TrainingModule(network, config, dataset.kinds)
        _fit(module, data, folder)
    validation_families = set(data.validation_set.families) if data.has_validation else set()
    model = TrainedModel(
        encoder=module.finished.encoder.cpu(),
        bank=module.finished.bank.cpu(),
        schema=schema,
        config=config,
        device_names=dataset.device_names,
        device_kinds=dataset.kinds,
        seconds_per_unit=dataset.seconds_per_unit,
        families=tuple(sorted(set(data.train_set.families))),
        validation_families=tuple(sorted(validation_families)),
        suites=tuple(sorted(set(dataset.suites))),
        code_version=__version__,
    )
    if dataset.num_simulated and config.simulated_weight:
        model = _fit_simulated(model, data.train_set)
    write_projector(folder / _LOGS, model, data.train_set)
    return model


def _fit_simulated(model: TrainedModel, train_set: TrainingSet) -> TrainedModel:
    """Settle the rows of the simulated devices: their times are exact, so that a close fit loses nothing."""
    config = model.config
    model.encoder.to(accelerator(config))
    programs_ND = model.encode(train_set.launches)
    columns = np.flatnonzero([kind == "simulated" for kind in train_set.kinds])
    weights = train_set.weights(typical_spread=config.typical_spread, family_balance=config.family_balance)
    names = [train_set.device_names[column] for column in columns]
    fitted = fit_rows(model, names, programs_ND, train_set.times[:, columns], weights[:, columns])
    fitted.encoder.cpu()
    return fitted


def _fit(module: TrainingModule, data: LaunchData, folder: Path) -> None:
    """Run Lightning; leave the best weights in the module, or the last where there is no validation."""
    config = module.config
    checkpoints = folder / "checkpoints"
    # One to go on from, often enough that little is lost, seldom enough that writing it costs little.
    every = max(1, config.epochs // _CHECKPOINTS)
    last = ModelCheckpoint(checkpoints, "last", every_n_epochs=every, enable_version_counter=False)
    best = ModelCheckpoint(checkpoints, "best", monitor=_MONITOR, enable_version_counter=False)
    callbacks: list[Callback] = [last]
    if data.has_validation:
        # `last` comes after what it has to remember the state of.
        stop = EarlyStopping(_MONITOR, patience=config.patience, check_on_train_epoch_end=False)
        callbacks = [stop, best, last]
    steps = len(data.train_dataloader())
    trainer = lightning.Trainer(
        accelerator=accelerator(config),
        devices=1,
        precision=config.precision,
        max_epochs=config.epochs,
        gradient_clip_val=config.gradient_clip,
        reload_dataloaders_every_n_epochs=1,
        limit_val_batches=1.0 if data.has_validation else 0,
        num_sanity_val_steps=0,
        log_every_n_steps=steps,
        logger=TensorBoardLogger(folder, name="", version=_LOGS),
        callbacks=callbacks,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    last_path = checkpoints / "last.ckpt"
    if last_path.is_file():
        _load_checkpoint(last_path)  # the trainer's own message on a damaged one would be a traceback
    with warnings.catch_warnings():
        for message, category in _LIGHTNING_WARNINGS:
            warnings.filterwarnings("ignore", message=message, category=category)
        trainer.fit(module, datamodule=data, ckpt_path=last_path if last_path.is_file() else None)
    if trainer.interrupted:
        raise KeyboardInterrupt
    logger.info("trained %d passes; best %s %s", trainer.current_epoch, _MONITOR, best.best_model_score)
    if data.has_validation:
        module.load_state_dict(_load_checkpoint(checkpoints / "best.ckpt")["state_dict"])


def _load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint: tensors and plain values only, nothing that runs code.

    Raises:
        ConfigError: It is damaged, or holds something else.
    """
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
        raise ConfigError(
            f"{path} is not a whole checkpoint ({type(error).__name__}); delete {path.parent.parent}, or choose "
            "another out_dir, and train again"
        ) from error


def _claim_folder(folder: Path, config: TrainingConfig, dataset: TrainingSet) -> None:
    """Write what is trained in a folder, or check that it is the same.

    Raises:
        ConfigError: It is another training.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # Where it runs may change between a start and its continuation.
    settings = asdict(replace(config, accelerator="auto"))
    run = {"config": settings, "dataset": dataset.fingerprint}
    path = folder / _RUN_FILE
    if not path.exists():
        with whole_file(path) as temporary:
            temporary.write_text(json.dumps(run, indent=1), encoding="utf-8")
        return
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{path} is damaged: {error}; train in an empty folder") from error
    if found != run:
        raise ConfigError(f"{folder} holds the training of another configuration or data set; choose another folder")
