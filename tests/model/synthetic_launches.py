"""Random launches and random devices whose times follow a known law: the truth that the model's tests learn.

The law: launch overhead + dispatch + the p-norm (close to a maximum) of the compute units' issue time, each memory
level's traffic and the waves of resident sub-groups times the latency of one sub-group. Which level serves an access
depends on its reuse distance and on the device's cache sizes, so the counted resources, which use fixed thresholds,
cannot be exact.
"""

from dataclasses import dataclass

import numpy as np

from perfvec.model.launch_input import FeatureSchema, LaunchInput
from perfvec.model.training_set import TrainingSet
from perfvec.resources import NUM_RESOURCES, RESOURCE_INDEX, SLOT_LADDER

CLASSES = ("fp32", "fp64", "int", "special", "other", "load", "local", "atomic", "barrier")
UNITS = (
    "fp32_issue",
    "fp64_issue",
    "int_issue",
    "special_issue",
    "other_issue",
    "local_passes",
    "l1_sectors",
    "l2_sectors",
    "dram_sectors",
    "atomic_passes",
    "barriers",
    "global_accesses",
)
STRIDES = (1.0, 4.0, 8.0, 32.0)  # sectors per access: uniform, unit, small, irregular
SCHEMA = FeatureSchema(
    features_version=1,
    feature_names=(*CLASSES, "lanes", "sectors", "reuse_group", "reuse_device", "dependency", "is_cold"),
    unit_names=UNITS,
    context_names=("log_work_groups", "log_sub_groups", "sub_groups_per_group", "log_instructions", "log_footprint"),
)
FIXED_GROUP_BIN, FIXED_DEVICE_BIN = 9.0, 15.0


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """True properties of a launch's tokens."""

    kind: np.ndarray
    sectors: np.ndarray
    passes: np.ndarray
    reuse_group: np.ndarray  # log2 of lines; 40 where cold
    reuse_device: np.ndarray
    dependency: np.ndarray  # instructions back to the nearest producer
    lanes: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Truth:
    tokens: Tokens
    token_weight: np.ndarray
    num_groups: int
    num_sub_groups: int


@dataclass(frozen=True, kw_only=True)
class Device:
    compute_units: float
    clock_hz: float
    cycles: np.ndarray  # issue cycles per class on one compute unit
    l1_bin: float
    l2_bin: float
    l1_bytes: float
    l2_bytes: float
    dram_bytes: float
    latency: np.ndarray  # cycles: arithmetic, L1, L2, DRAM
    slots: float
    overhead_s: float


def random_device(rng):
    units = float(2 ** rng.uniform(2, 7.2))
    clock = rng.uniform(0.8e9, 2.2e9)
    cycles = np.array([0.25, 0.25 * 2 ** rng.uniform(0, 5), 0.4, 2.0, 0.25, 0.5, 1.0, 4.0, 4.0])
    per_unit = units * clock
    return Device(
        compute_units=units,
        clock_hz=clock,
        cycles=cycles * 2 ** rng.uniform(-0.7, 0.7, len(cycles)),
        l1_bin=rng.uniform(7, 11),
        l2_bin=rng.uniform(12, 19),
        l1_bytes=per_unit * 2 ** rng.uniform(5.5, 7.5),
        l2_bytes=per_unit * 2 ** rng.uniform(4, 6),
        dram_bytes=per_unit * 2 ** rng.uniform(2, 4.5),
        latency=np.array([4.0, 30.0, 200.0, 500.0]) * 2 ** rng.uniform(-0.5, 0.7, 4),
        slots=units * rng.choice([16.0, 32.0, 64.0]),
        overhead_s=2e-6 * 2 ** rng.uniform(-1, 1.5),
    )


def _family(rng):
    """A kernel's static instructions: the mix depends on an archetype."""
    archetype = rng.integers(6)
    memory = (0.08, 0.45, 0.25, 0.35, 0.2, 0.5)[archetype]
    mix = rng.dirichlet(np.array([4.0, 0.4, 3.0, 0.5, 4.0]) * rng.choice([0.4, 1.0, 3.0]))
    local = 0.25 * (archetype == 2)
    atomic = 0.05 * (archetype == 4)
    barrier = 0.02 * (archetype in (2, 4))
    left = 1 - memory - local - atomic - barrier
    probabilities = np.concatenate([left * mix, [memory, local, atomic, barrier]])
    count = int(rng.integers(15, 90))
    kind = rng.choice(len(CLASSES), count, p=probabilities / probabilities.sum())
    stride = rng.choice(STRIDES, count, p=rng.dirichlet([0.5, 2.0, 0.5, 0.5 + 2 * (archetype == 3)]))
    is_cold = rng.random(count) < rng.uniform(0.0, 0.9)
    return {
        "kind": kind,
        "stride": stride,
        "passes": 2.0 ** rng.integers(0, 4, count),
        "group": np.where(is_cold, 40.0, rng.uniform(1, 14, count)),
        "device": np.where(is_cold, 40.0, rng.uniform(6, 20, count)),
        "dependency": np.where(rng.random(count) < rng.uniform(0.1, 0.9), rng.integers(1, 3, count), 8),
        "divergence": rng.uniform(0, 1) if archetype in (3, 5) else 0.0,
        "scale": rng.uniform(0, 1),
    }


def _launch(family, rng, name):
    num_windows, length = int(rng.integers(3, 12)), len(family["kind"])
    per_group = int(rng.choice([2, 4, 8]))
    num_groups = int(2 ** rng.uniform(0, 14))
    num_sub_groups = num_groups * per_group
    static = np.tile(np.arange(length), num_windows)
    lengths = np.full(num_windows, length)
    lanes_of_window = np.where(rng.random(num_windows) < family["divergence"], rng.integers(1, 32, num_windows), 32)
    lanes = np.repeat(lanes_of_window, lengths)
    trips = num_sub_groups * 2 ** rng.uniform(0, 8) * rng.dirichlet(np.ones(num_windows))
    grow = family["scale"] * np.log2(1 + num_groups) / 4  # a larger launch reuses from further away
    kind = family["kind"][static]
    is_load = kind == 5
    device_reuse = family["device"][static]
    tokens = Tokens(
        kind=kind,
        sectors=np.where(is_load, np.minimum(family["stride"][static], lanes), 0.0),
        passes=np.where((kind == 6) | (kind == 7), family["passes"][static], 0.0),
        reuse_group=family["group"][static],
        reuse_device=np.where(device_reuse < 40, np.maximum(device_reuse + grow, family["group"][static]), 40.0),
        dependency=family["dependency"][static].astype(float),
        lanes=lanes.astype(float),
    )
    truth = Truth(
        tokens=tokens, token_weight=np.repeat(trips, lengths), num_groups=num_groups, num_sub_groups=num_sub_groups
    )
    units = _units(tokens)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    launch = LaunchInput.from_tokens(
        schema=SCHEMA,
        token_features=_features(tokens),
        token_units=units.astype(np.float32),
        window_start=starts,
        window_weight=trips,
        context=_context(truth, per_group),
        resources=_resources(truth, units),
        name=name,
    )
    return launch, truth


def _features(tokens):
    one_hot = np.eye(len(CLASSES))[tokens.kind]
    is_load = tokens.kind == 5
    is_cold = is_load & (tokens.reuse_group >= 40)
    others = np.stack(
        [
            tokens.lanes / 32,
            np.log2(1 + tokens.sectors),
            np.where(is_load & ~is_cold, np.floor(tokens.reuse_group), 0.0),
            np.where(is_load & ~is_cold, np.floor(tokens.reuse_device), 0.0),
            1 / tokens.dependency,
            is_cold,
        ],
        axis=1,
    )
    return np.concatenate([one_hot, others], axis=1).astype(np.float32)


def _units(tokens):
    units = np.zeros((len(tokens.kind), len(UNITS)))
    for index in range(5):
        units[:, index] = tokens.kind == index
    units[:, 4] += tokens.kind > 4
    units[:, 5] = np.where(tokens.kind == 6, tokens.passes, 0)
    units[:, 6] = tokens.sectors
    units[:, 7] = np.where(tokens.reuse_group >= FIXED_GROUP_BIN, tokens.sectors, 0)
    units[:, 8] = np.where(tokens.reuse_device >= FIXED_DEVICE_BIN, units[:, 7], 0)
    units[:, 9] = np.where(tokens.kind == 7, tokens.passes, 0)
    units[:, 10] = tokens.kind == 8
    units[:, 11] = tokens.kind == 5
    return units


def _context(truth, per_group):
    executed = truth.token_weight.sum()
    footprint = truth.token_weight @ (truth.tokens.sectors * (truth.tokens.reuse_group >= 40))
    values = [truth.num_groups, truth.num_sub_groups, 2.0**per_group, executed / truth.num_sub_groups, 1 + footprint]
    return np.log2(values).astype(np.float32)


def _resources(truth, units):
    resources = np.zeros(NUM_RESOURCES)
    resources[RESOURCE_INDEX["launch"]] = 1
    resources[RESOURCE_INDEX["work_groups"]] = truth.num_groups
    totals = truth.token_weight @ units
    for name, total in zip(UNITS[:11], totals[:11], strict=True):
        resources[RESOURCE_INDEX[name]] = total
    issue, accesses = truth.token_weight.sum(), totals[11]
    for slots in SLOT_LADDER:
        waves = np.ceil(truth.num_sub_groups / slots) / truth.num_sub_groups
        resources[RESOURCE_INDEX[f"issue_per_slot_{slots}"]] = issue * waves
        resources[RESOURCE_INDEX[f"access_per_slot_{slots}"]] = accesses * waves
    return resources


def _above(distance, size):
    return 1 / (1 + np.exp(-(distance - size) / 0.5))


def true_time(truth, device, rng, noise):
    tokens, weight = truth.tokens, truth.token_weight
    miss_l1 = _above(tokens.reuse_group, device.l1_bin)
    miss_l2 = miss_l1 * _above(tokens.reuse_device, device.l2_bin)
    scale = np.ones(len(tokens.kind))
    scale = np.where(tokens.passes > 0, tokens.passes, scale)
    per_second = device.compute_units * device.clock_hz
    issue_s = weight @ (device.cycles[tokens.kind] * scale) / per_second
    traffic = [32 * (weight @ (tokens.sectors * part)) for part in (1.0, miss_l1, miss_l2)]
    memory_s = [
        b / rate for b, rate in zip(traffic, (device.l1_bytes, device.l2_bytes, device.dram_bytes), strict=True)
    ]
    arithmetic, l1, l2, dram = device.latency
    wait = np.where(tokens.kind == 5, l1 + miss_l1 * (l2 - l1) + miss_l2 * (dram - l2), arithmetic * scale)
    serial_cycles = weight @ np.maximum(wait / tokens.dependency, 1.0) / truth.num_sub_groups
    latency_s = np.ceil(truth.num_sub_groups / device.slots) * serial_cycles / device.clock_hz
    parts = np.array([issue_s, *memory_s, latency_s])
    hidden = parts.max() * np.sum((parts / parts.max()) ** 5) ** 0.2
    dispatch_s = truth.num_groups * 200 / per_second
    return (device.overhead_s + dispatch_s + hidden) * np.exp(noise * rng.standard_normal())


def datasheet(device, rng, error=0.25):
    """Seconds per unit as a datasheet would give them: the right order, each off by some 25 %."""
    per_second = device.compute_units * device.clock_hz
    prices = dict(
        zip(UNITS[:5], device.cycles[:5] / per_second, strict=True),
        launch=device.overhead_s,
        work_groups=200 / per_second,
        local_passes=device.cycles[6] / per_second,
        l1_sectors=32 / device.l1_bytes,
        l2_sectors=32 / device.l2_bytes,
        dram_sectors=32 / device.dram_bytes,
        atomic_passes=device.cycles[7] / per_second,
        barriers=device.cycles[8] / per_second,
    )
    nearest = SLOT_LADDER[int(np.argmin(np.abs(np.log(np.array(SLOT_LADDER) / device.slots))))]
    prices[f"issue_per_slot_{nearest}"] = device.latency[0] / device.clock_hz
    prices[f"access_per_slot_{nearest}"] = device.latency[2] / device.clock_hz
    seconds = np.zeros(NUM_RESOURCES)
    for name, price in prices.items():
        seconds[RESOURCE_INDEX[name]] = price
    return seconds * np.exp(error * rng.standard_normal(NUM_RESOURCES))


def make_training_set(*, num_launches, num_families, num_devices, seed=0, noise=0.03):
    """A training set of random launches on random devices; the devices depend on the seed alone."""
    rng = np.random.default_rng(seed)
    devices = [random_device(rng) for _ in range(num_devices)]
    seconds = np.stack([datasheet(device, rng) for device in devices])
    kernels = [_family(rng) for _ in range(num_families)]
    of_launch = np.arange(num_launches) % num_families
    pairs = [_launch(kernels[k], rng, f"kernel{k}/{i}") for i, k in enumerate(of_launch)]
    times = np.array([[true_time(truth, device, rng, noise) for device in devices] for _, truth in pairs])
    return TrainingSet(
        launches=tuple(launch for launch, _ in pairs),
        families=tuple(f"kernel{k}" for k in of_launch),
        suites=tuple(f"suite{k % 3}" for k in of_launch),
        times=times,
        spread=np.full(times.shape, noise),
        device_names=tuple(f"device{i}" for i in range(num_devices)),
        seconds_per_unit=seconds,
    )
