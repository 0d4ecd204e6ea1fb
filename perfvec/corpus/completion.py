"""What an outside source needs to compile besides itself: headers, functions of other files, macros, placeholders.

Packages build their kernels with what their host code adds. Where that is a header or a function of another file of the
package, it is found; where it is a macro or a template's placeholder, a type or a number is put there. So the kernel is
one that its package could build, not always one that it does build; what was added is said.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import final

from perfvec.corpus.outside import SUFFIXES, OutsideSource
from perfvec.errors import SourceError
from perfvec.program.frontend import compile_source

_ROUNDS = 12  # compilations; each says more of what is missing
_NO_FILE = re.compile(r"error: '([^']+)' file not found")
_NO_TYPE = re.compile(r"unknown type name '(\w+)'")
_NO_NAME = re.compile(r"use of undeclared identifier '(\w+)'")
_NO_FUNCTION = re.compile(r"implicit declaration of function '(\w+)'")
# Mako's `${expression}`, and Python's `%(name)s`.
_PLACEHOLDER = re.compile(r"\$\{([^{}]+)\}|%\(([A-Za-z_]\w*)\)[sdif]")
_HEADERS = (".h", ".clh", ".hcl")
_TYPE, _NUMBER = "float", "8"
# Words in the name of a macro that stands for something else than a number or a type.
_BY_WORD = (("FILTER", "CLK_FILTER_NEAREST"), ("ADDRESS", "CLK_ADDRESS_CLAMP_TO_EDGE"))
_INTEGER_WORDS = ("INT", "IDX", "INDEX", "LABEL", "MASK")
# The macros of CLIJ's kernels, which pyclesperanto and others share: each image has its own type and ways of access.
_CLIJ_IMAGE = re.compile(r"\bIMAGE_(\w+?)_TYPE\b")
_CLIJ_PREAMBLE = "preamble.cl"
_MOST_CLIJ_TRIALS = 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A source that compiles.

    Attributes:
        source: It, with what was missing.
        module: It compiled, as `perfvec.program.frontend.compile_source` gives it.
        added: What was missing, in words; empty where it compiles as it lies.
    """

    source: OutsideSource
    module: bytes | str
    added: tuple[str, ...] = ()


def complete(source: OutsideSource, folders: Sequence[Path] = ()) -> Completed:
    """Compile a source with what it lacks.

    Args:
        source: OpenCL C.
        folders: Where headers and functions of other files are looked for, besides the source's own folder.

    Raises:
        SourceError: It does not compile with all that was found either; the compiler's last message.
    """
    failure: SourceError | None = None
    for trial in _dialects(_without_placeholders(source), tuple(folders)):
        try:
            return _completed(trial, source, tuple(folders))
        except SourceError as error:
            failure = failure or error
    assert failure is not None
    raise failure


def _completed(trial: OutsideSource, original: OutsideSource, folders: tuple[Path, ...]) -> Completed:
    added: list[str] = [] if trial.text == original.text else ["text that its package puts in"]
    options = list(trial.build_options)
    for _ in range(_ROUNDS):
        try:
            module = compile_source(trial.text, tuple(options), trial.name)
        except SourceError as error:
            more = [pair for pair in _missing(str(error), trial, folders) if pair[0] not in options]
            if not more:
                raise
            for option, words in more:
                # A file comes before what it may define for itself.
                options.insert(len(original.build_options) if option.startswith("-I") else len(options), option)
                added.append(words)
            continue
        return Completed(source=replace(trial, build_options=tuple(options)), module=module, added=tuple(added))
    raise SourceError(f"{trial.name} lacks more than {_ROUNDS} rounds of compiling have found")


def _missing(message: str, source: OutsideSource, folders: tuple[Path, ...]) -> Iterator[tuple[str, str]]:
    """Build options for what a compiler's message says is missing, and what each is in words."""
    own = tuple(Path(option[2:]) for option in source.build_options if option.startswith("-I"))
    for name in dict.fromkeys(_NO_FILE.findall(message)):
        path = _file_named(name, (*own, *folders))
        if path is not None:
            parts = len(Path(name).parts)
            yield f"-I{path.parents[parts - 1]}", f"header {name}"
    for name in dict.fromkeys(_NO_FUNCTION.findall(message)):
        path = _file_with_function(name, (*own, *_around(own, folders)))
        if path is not None and not source.name.endswith(path.name):
            yield f"-include {path}", f"function {name} of {path.name}"
    names = dict.fromkeys(_NO_NAME.findall(message))
    types = [
        *dict.fromkeys(_NO_TYPE.findall(message)),
        *(name for name in names if _is_used_as_type(name, source.text)),
    ]
    for name in types:
        yield f"-D{name}={_type_for(name)}", f"type {name}"
    if types:  # what else is unknown may be declared with them
        return
    for name in [name for name in names if name.isupper()] or names:
        value = next((value for word, value in _BY_WORD if word in name.upper()), _NUMBER)
        yield f"-D{name}={value}", f"macro {name}"


def _around(own: Sequence[Path], folders: Sequence[Path]) -> tuple[Path, ...]:
    """Those of the folders that a source's own lies in: its package."""
    return tuple(folder for folder in folders if any(path.is_relative_to(folder) for path in own))


def _type_for(name: str) -> str:
    return "int" if any(word in name.upper() for word in _INTEGER_WORDS) else _TYPE


def _is_used_as_type(name: str, text: str) -> bool:
    """Whether a name that the compiler takes for a value is a cast's, a declaration's or a pointer's type."""
    cast = rf"\(\s*{name}\s*\**\s*\)\s*[\w(]"
    declared = rf"(?:^|[;{{(,]|\b(?:const|global|local|private|constant))\s*{name}\s+\**\s*\w+\s*[=;,\[)]"
    return re.search(f"{cast}|{declared}|sizeof\\s*\\(\\s*{name}", text, re.MULTILINE) is not None


def _without_placeholders(source: OutsideSource) -> OutsideSource:
    """A template's placeholders become names, which are then macros that are missing."""

    def name(match: re.Match[str]) -> str:
        words = re.sub(r"\W+", "_", (match[1] or match[2]).strip())
        return words if words[0].isalpha() else f"_{words}"

    return replace(source, text=_PLACEHOLDER.sub(name, source.text))


# ---- files ------------------------------------------------------------------------------------------------------


@cache
def _file_named(name: str, folders: tuple[Path, ...]) -> Path | None:
    last = Path(name).name
    found = (path for folder in folders for path in sorted(folder.rglob(last)) if str(path).endswith(name))
    return next((path for path in found if path.is_file() and " " not in str(path)), None)


@cache
def _file_with_function(name: str, folders: tuple[Path, ...]) -> Path | None:
    """The file that defines a function, not as a kernel."""
    function = rf"^[^\S\n]*(?!.*\bkernel\b)[\w \t*]*\b{name}\s*\([^;{{}}]*\)\s*\{{"
    define = re.compile(rf"{function}|#define\s+{name}\(", re.MULTILINE)
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (*SUFFIXES, *_HEADERS) and " " not in str(path) and path.is_file():
                text = path.read_text(encoding="utf-8", errors="replace")
                if name in text and define.search(text):
                    return path
    return None


# ---- CLIJ -------------------------------------------------------------------------------------------------------


def _dialects(source: OutsideSource, folders: tuple[Path, ...]) -> Iterator[OutsideSource]:
    """The source, or what CLIJ's macros make of it for images of two and three dimensions."""
    images = list(dict.fromkeys(_CLIJ_IMAGE.findall(source.text)))
    path = _file_named(_CLIJ_PREAMBLE, folders) if images else None
    if path is None:
        yield source
        return
    preamble = path.read_text(encoding="utf-8", errors="replace")
    order = (2, 3) if "2d" in source.name else (3, 2)
    trials = itertools.product(order, repeat=len(images))
    uniform = [(dims,) * len(images) for dims in order]
    mixed = itertools.islice((trial for trial in trials if len(set(trial)) > 1), _MOST_CLIJ_TRIALS)
    for trial in (*uniform, *mixed):
        lines = [*_CLIJ_SIZES, *(line for image in zip(images, trial, strict=True) for line in _clij_image(*image))]
        yield replace(source, text="\n".join([*lines, preamble, "#line 1", source.text]))


_CLIJ_SIZES = tuple(
    f"#define GET_IMAGE_{side}(image) {side.lower()}_of_##image" for side in ("WIDTH", "HEIGHT", "DEPTH")
)


def _clij_image(name: str, dims: int) -> Iterator[str]:
    """Macros of one image, held in a buffer of floats behind its three sizes, as pyclesperanto's arrays are."""
    sizes = "".join(f"int {side}_of_{name}, " for side in ("width", "height", "depth"))
    position = "(x, y)" if dims == 2 else "(x, y, z, 0)"
    access = "GET_IMAGE_WIDTH(i), GET_IMAGE_HEIGHT(i), GET_IMAGE_DEPTH(i), i, a, b"
    yield f"#define IMAGE_{name}_TYPE {sizes}__global float*"
    yield f"#define IMAGE_{name}_PIXEL_TYPE float"
    yield f"#define CONVERT_{name}_PIXEL_TYPE clij_convert_float_sat"
    yield f"#define POS_{name}_TYPE int{2 if dims == 2 else 4}"
    yield f"#define POS_{name}_INSTANCE(x, y, z, w) (POS_{name}_TYPE){position}"
    yield f"#define READ_{name}_IMAGE(i, a, b) read_buffer{dims}df({access})"
    yield f"#define WRITE_{name}_IMAGE(i, a, b) write_buffer{dims}df({access})"
