"""A corpus of generated launches, stored as recipes: the seed of each kernel, and what each launch chose.

Sources and buffers are not stored. They follow from the recipes byte for byte (docs/format.md, perfvec-corpus).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np

from perfvec.corpus.draw import Draw
from perfvec.corpus.generator import GENERATOR_VERSION, GeneratedKernel, generate_kernel
from perfvec.corpus.ndrange import Demands, Fill, NDRange, deck, fill_of, sample_ndrange
from perfvec.corpus.normal_form import normal_digest
from perfvec.corpus.sizing import LEAST_S, choose_sizes, draw_target_s, estimate_s
from perfvec.errors import ConfigError, FormatError
from perfvec.files import array_of, read_h5, whole_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arch.device import Device
    from perfvec.corpus.suite import SuiteLaunch

FORMAT = "perfvec-corpus"
FORMAT_VERSION = 1
OnBuilt: TypeAlias = Callable[[str, int, int], None]
# Seeds of kernels are the corpus's seed times this, and what follows.
SEED_STRIDE = 1 << 24
_SLACK = "slack"
_ATTEMPTS = 6
_CARDS_TRIED = 8
# Launches that would take longer, by a rough estimate, are not made.
_LONGEST_S = {"gpu": 0.1, "accelerator": 0.1, "cpu": 0.03}
_KEPT_KERNELS = 64
# Programs of a kernel for a device: more would be versions of one loop, which cost a compiler as much as new kernels.
PROGRAMS_PER_KERNEL = 8
_LOCAL_SIZES = 2  # of a kernel that is built for each; so many that are multiples of the sub-group width, so many not


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRecipe:
    """One launch.

    Attributes:
        kernel: Row of `Corpus.kernel_seeds`.
        device: Row of `Corpus.devices`: what its sizes are meant for.
        ndrange: Global and local size.
        sizes: A number for each of the kernel's sizes in order, then the slack.
    """

    kernel: int
    device: int
    ndrange: NDRange
    sizes: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Generated launches.

    Attributes:
        seed: What the corpus was built from.
        devices: Names of the devices that its sizes are meant for.
        kernel_seeds: Seed of each kernel; see `perfvec.corpus.generator.generate_kernel`.
        recipes: The launches.
        stored_digest: The digest that its file has; "" for one that was built just now.
    """

    seed: int
    devices: tuple[str, ...]
    kernel_seeds: tuple[int, ...]
    recipes: tuple[LaunchRecipe, ...]
    stored_digest: str = field(default="", compare=False)

    def __len__(self) -> int:
        return len(self.recipes)

    def entry(self, number: int) -> SuiteLaunch:
        """A launch with its place in the corpus."""
        recipe = self.recipes[number]
        return launch_of_recipe(self.kernel_seeds[recipe.kernel], recipe)

    def entries(self) -> Iterator[SuiteLaunch]:
        """All launches, in order."""
        return map(self.entry, range(len(self)))

    def digest(self) -> str:
        """16 hex digits that name all launches by content; regenerates every one."""
        state = hashlib.sha256()
        for entry in self.entries():
            state.update(entry.launch.digest.encode())
        return state.hexdigest()[:16]

    def save(self, path: str | Path) -> None:
        """Write it to an HDF5 file, whole or not at all.

        Raises:
            FormatError: The folder does not exist.
        """
        import h5py

        columns = _columns(self)
        with whole_file(path) as temporary, h5py.File(temporary, "w") as file:
            attributes = {
                "format": FORMAT,
                "format_version": FORMAT_VERSION,
                "generator_version": GENERATOR_VERSION,
                "seed": self.seed,
                "devices": list(self.devices),
                "digest": self.digest(),
            }
            for name, value in attributes.items():
                file.attrs[name] = value
            for name, (values, units) in columns.items():
                dataset = file.create_dataset(name, data=values, compression="gzip", compression_opts=9, shuffle=True)
                dataset.attrs["units"] = units

    @classmethod
    def load(cls, path: str | Path, *, is_checked: bool = False) -> Corpus:
        """Read a corpus back.

        Args:
            path: The file.
            is_checked: Regenerate every launch and compare with the digest that was stored.

        Raises:
            FormatError: The file is missing, damaged, of another kind or version, was made by another version of the
                generator, or its launches do not regenerate.
        """
        with read_h5(path, kind=FORMAT, versions=(FORMAT_VERSION,)) as file:
            version = int(str(file.attrs.get("generator_version", 0)))
            if version != GENERATOR_VERSION:
                raise FormatError(
                    f"{path} was built by generator {version}; this release has generator {GENERATOR_VERSION}, whose "
                    "kernels differ. Build the corpus again, or use the release that built it."
                )
            try:
                corpus = _from_columns(
                    seed=int(str(file.attrs["seed"])),
                    devices=tuple(map(str, np.asarray(file.attrs["devices"]).tolist())),
                    columns={name: array_of(file, name) for name in _COLUMNS},
                )
                digest = str(file.attrs["digest"])
            except (KeyError, ValueError, IndexError, TypeError) as error:
                raise FormatError(f"{path} is damaged: {error}; build the corpus again") from error
        if is_checked and corpus.digest() != digest:
            raise FormatError(f"the launches of {path} do not regenerate as they were; build the corpus again")
        return replace(corpus, stored_digest=digest)


@lru_cache(maxsize=_KEPT_KERNELS)
def _kernel(seed: int) -> GeneratedKernel:
    return generate_kernel(seed)


def launch_of_recipe(kernel_seed: int, recipe: LaunchRecipe) -> SuiteLaunch:
    """A launch with its place in the corpus, from the seed of its kernel and its recipe."""
    kernel = _kernel(kernel_seed)
    return kernel.launch(recipe.ndrange.global_size, recipe.ndrange.local_size, sizes_of(kernel, recipe.sizes))


def sizes_of(kernel: GeneratedKernel, values: Sequence[int]) -> dict[str, int]:
    """The sizes of a recipe by name.

    Raises:
        FormatError: There are more or fewer than the kernel has.
    """
    names = [*(size.name for size in kernel.sizes), _SLACK]
    if len(names) != len(values):
        raise FormatError(
            f"kernel {kernel.name!r} has sizes {', '.join(names)}; found {len(values)} values. The file is damaged; "
            "build the corpus again."
        )
    return dict(zip(names, values, strict=True))


def demands_of(kernel: GeneratedKernel) -> Demands:
    """What a kernel asks of an NDRange."""
    return Demands(
        dims=kernel.structure.dims,
        is_power_of_two=kernel.is_power_of_two,
        local_item_bytes=kernel.local_item_bytes,
        local_fixed_bytes=kernel.local_fixed_bytes,
    )


def recipe_fill(corpus: Corpus, number: int, devices: Mapping[str, Device]) -> Fill:
    """What a launch does to the device that it is meant for."""
    recipe = corpus.recipes[number]
    kernel = _kernel(corpus.kernel_seeds[recipe.kernel])
    return fill_of(devices[corpus.devices[recipe.device]], recipe.ndrange, demands_of(kernel))


# ---- building ---------------------------------------------------------------------------------------------------


def distinct_kernels(seed: int) -> Iterator[GeneratedKernel]:
    """Kernels without end, no two with one normal form; the seed determines them."""
    seen: set[bytes] = set()
    number = seed * SEED_STRIDE
    while True:
        kernel = generate_kernel(number)
        number += 1
        form = normal_digest(kernel.source)
        if form not in seen:
            seen.add(form)
            yield kernel


def build_corpus(
    num_kernels: int,
    devices: Sequence[Device],
    *,
    launches_per_kernel: int = 8,
    programs_per_kernel: int = PROGRAMS_PER_KERNEL,
    seed: int = 0,
    on_built: OnBuilt = lambda _what, _done, _total: None,
) -> Corpus:
    """Build a corpus: kernels, and launches of each for every device.

    Args:
        num_kernels: Kernels.
        devices: What the launches are meant for; each kernel has launches for each.
        launches_per_kernel: Launches of a kernel for a device.
        programs_per_kernel: Most programs of these: build options, and local sizes where they are compiled in.
        seed: The same seed gives the same corpus.
        on_built: Told how many kernels are ready.

    Raises:
        ConfigError: A number is not allowed.
    """
    for name, value in (
        ("kernels", num_kernels),
        ("launches of a kernel", launches_per_kernel),
        ("programs of a kernel", programs_per_kernel),
    ):
        if not 1 <= value < SEED_STRIDE:
            raise ConfigError(f"{value} {name}; allowed are 1 to {SEED_STRIDE - 1}")
    if not 0 <= seed < 1 << 39 or not devices:
        raise ConfigError(f"seed {seed} and {len(devices)} devices; allowed are 0 to {(1 << 39) - 1}, and at least one")
    draw = Draw(seed)
    decks = [deck(draw, num_kernels * launches_per_kernel) for _ in devices]
    kernel_seeds: list[int] = []
    recipes: list[LaunchRecipe] = []
    for kernel in distinct_kernels(seed):
        made = [
            recipe
            for row, (device, cards) in enumerate(zip(devices, decks, strict=True))
            for recipe in _launches(
                draw, kernel, len(kernel_seeds), device, row, cards, launches_per_kernel, programs_per_kernel
            )
        ]
        if not made:  # too large for every device
            continue
        kernel_seeds.append(kernel.seed)
        recipes += made
        on_built("building", len(kernel_seeds), num_kernels)
        if len(kernel_seeds) == num_kernels:
            break
    return Corpus(
        seed=seed,
        devices=tuple(device.name for device in devices),
        kernel_seeds=tuple(kernel_seeds),
        recipes=tuple(recipes),
    )


def _launches(
    draw: Draw,
    kernel: GeneratedKernel,
    number: int,
    device: Device,
    row: int,
    cards: list[tuple[Fill, bool]],
    count: int,
    most_programs: int,
) -> list[LaunchRecipe]:
    """Launches of a kernel for a device, as the cards say; cards that do not suit the kernel stay for others."""
    made: dict[tuple[object, ...], LaunchRecipe] = {}
    # Where the local size is a macro, or the driver compiles for it (PoCL), a few of them serve all launches.
    local_sizes: dict[bool, list[tuple[int, ...]]] | None = None
    if {"L", "LX", "LY"} & set(kernel.macros) or device.type == "cpu":
        local_sizes = {True: [], False: []}
    macros = [place for place, size in enumerate(kernel.sizes) if size.kind == "macro"]

    def program(recipe: LaunchRecipe) -> tuple[tuple[int, ...], tuple[int, ...]]:
        local_size = () if local_sizes is None else recipe.ndrange.local_size
        return local_size, tuple(recipe.sizes[place] for place in macros)

    programs: dict[tuple[tuple[int, ...], tuple[int, ...]], bool] = {}  # and whose local size is a multiple
    refused: list[tuple[Fill, bool]] = []
    while cards and len(made) < count and len(refused) < _CARDS_TRIED:
        card = cards.pop()
        known = [] if local_sizes is None else local_sizes[card[1]]
        local = known if len(known) >= _LOCAL_SIZES else ()
        built_in: dict[str, int] = {}
        if len(programs) >= most_programs:
            fitting = [key for key, is_multiple in programs.items() if local_sizes is None or is_multiple == card[1]]
            if not fitting:
                refused.append(card)
                continue
            local_size, values = draw.choice(fitting)
            local = local if local_sizes is None else [local_size]
            built_in = {kernel.sizes[place].name: value for place, value in zip(macros, values, strict=True)}
        recipe = draw_recipe(
            draw, kernel, device, card, local_sizes=local, macros=built_in, kernel_row=number, device_row=row
        )
        if recipe is None or (recipe.ndrange, recipe.sizes) in made:
            refused.append(card)
        else:
            made[recipe.ndrange, recipe.sizes] = recipe
            programs.setdefault(program(recipe), card[1])
            if recipe.ndrange.local_size not in known:
                known.append(recipe.ndrange.local_size)
    cards.extend(refused)
    for place, card in enumerate(refused):  # to the bottom, so that the next kernel does not begin with them
        cards[len(cards) - 1 - place], cards[place] = cards[place], card
    return sorted(made.values(), key=program)


def draw_recipe(
    draw: Draw,
    kernel: GeneratedKernel,
    device: Device,
    card: tuple[Fill, bool],
    *,
    local_sizes: Sequence[tuple[int, ...]] = (),
    macros: Mapping[str, int] | None = None,
    target_s: float | None = None,
    kernel_row: int = 0,
    device_row: int = 0,
) -> LaunchRecipe | None:
    """Draw a launch of a kernel.

    Args:
        draw: Where from.
        kernel: The kernel.
        device: What it is for.
        card: What it shall do to the device, and whether its local size shall be a multiple of the sub-group width.
        local_sizes: Local sizes to choose from; a new one where there are none.
        macros: Sizes that a program has built in, if it shall be one that there is.
        target_s: Estimated time to aim at; drawn, and not too short, where it is None.
        kernel_row: `LaunchRecipe.kernel`.
        device_row: `LaunchRecipe.device`.

    Returns:
        None where the kernel has no such launch of a useful length.
    """
    fill, is_multiple = card
    for attempt in range(_ATTEMPTS):
        ndrange = sample_ndrange(
            draw, device, demands_of(kernel), fill, is_multiple=is_multiple, local_sizes=local_sizes
        )
        aim_s = target_s or draw_target_s(draw, device)
        sizes = choose_sizes(draw, kernel, ndrange, device, target_s=aim_s, macros=macros)
        if sizes is None:
            continue
        names = kernel.names(ndrange.global_size, ndrange.local_size, sizes)
        time_s = estimate_s(kernel, names, device)
        is_last = device.type != "cpu" and attempt == _ATTEMPTS - 1
        is_too_short = target_s is None and time_s < LEAST_S[device.type] and not is_last
        if time_s <= _LONGEST_S[device.type] and not is_too_short:
            values = tuple(sizes[name] for name in (*(size.name for size in kernel.sizes), _SLACK))
            return LaunchRecipe(kernel=kernel_row, device=device_row, ndrange=ndrange, sizes=values)
    return None


# ---- storing ----------------------------------------------------------------------------------------------------

_COLUMNS = ("kernel_seed", "kernel_sizes", "launch_kernel", "launch_device", "global_size", "local_size", "sizes")


def _columns(corpus: Corpus) -> dict[str, tuple[NDArray[np.generic], str]]:
    recipes = corpus.recipes
    counts = np.zeros(len(corpus.kernel_seeds), np.uint8)
    for recipe in recipes:
        counts[recipe.kernel] = len(recipe.sizes)
    padded = [
        [[*sizes, 0, 0][:3] for sizes in (recipe.ndrange.global_size, recipe.ndrange.local_size)] for recipe in recipes
    ]
    sizes = np.array(padded, np.uint32).reshape(len(recipes), 2, 3)
    flat = [value for recipe in recipes for value in recipe.sizes]
    return {
        "kernel_seed": (np.array(corpus.kernel_seeds, np.uint64), "1"),
        "kernel_sizes": (counts, "sizes of a launch"),
        "launch_kernel": (np.array([recipe.kernel for recipe in recipes], np.uint32), "row of kernel_seed"),
        "launch_device": (np.array([recipe.device for recipe in recipes], np.uint8), "row of devices"),
        "global_size": (sizes[:, 0], "work-item"),
        "local_size": (sizes[:, 1].astype(np.uint16), "work-item"),
        "sizes": (np.array(flat, np.int32), "1"),
    }


def _from_columns(*, seed: int, devices: tuple[str, ...], columns: Mapping[str, NDArray[np.generic]]) -> Corpus:
    lists = {name: columns[name].tolist() for name in _COLUMNS}
    recipes, start = [], 0
    for kernel, device, whole, local in zip(
        lists["launch_kernel"], lists["launch_device"], lists["global_size"], lists["local_size"], strict=True
    ):
        end = start + lists["kernel_sizes"][kernel]
        dims = sum(1 for size in local if size)
        recipes.append(
            LaunchRecipe(
                kernel=kernel,
                device=device,
                ndrange=NDRange(global_size=tuple(whole[:dims]), local_size=tuple(local[:dims])),
                sizes=tuple(lists["sizes"][start:end]),
            )
        )
        start = end
    if start != len(lists["sizes"]) or any(recipe.device >= len(devices) for recipe in recipes):
        raise ValueError("its tables point outside each other")
    return Corpus(seed=seed, devices=devices, kernel_seeds=tuple(lists["kernel_seed"]), recipes=tuple(recipes))
