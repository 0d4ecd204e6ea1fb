"""Compilers of OpenCL C that somebody else maintains: the clang in Oclgrind's wheel, and a clang of the machine.

Both are asked for code without optimisation in the SPIR-64 form. Oclgrind's comes first, because it is the same on
every machine and the shipped model was trained with it; `PERFVEC_CLANG` names a clang to use instead.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeAlias

from perfvec.errors import SourceError
from perfvec.program.sub_groups import declarations

CLANG_VARIABLE = "PERFVEC_CLANG"
_OCLGRIND_PLATFORM = "Oclgrind"
# Build options, OpenCL's (5.6.4) and a few that compilers share: those with a value in the same word or the next.
# Others may end the process where the compiler runs in it, or make it write something else than code.
_WITH_VALUE = re.compile(r"-(?:D|I|U|include)")
_ALONE = re.compile(r"-(?:cl-[\w=.+-]+|w|W[\w=-]*|O\w?|f(?!syntax-only)[\w=-]+)")
# Oclgrind's clang dies of inline assembly; so it becomes a call of a function whose name says what is wrong.
_NO_ASSEMBLY = tuple(f"-D{word}=inline_assembly_is_not_OpenCL_C" for word in ("asm", "__asm", "__asm__"))
# What clang says where a hint is of more use to a newcomer than the message alone.
_HINTS = (
    (
        r"'opencl-c\S*' file not found",
        "this clang has no OpenCL headers: take LLVM's own, and name it in PERFVEC_CLANG",
    ),
    (r"' file not found", "tell where headers are: a build option -I FOLDER"),
)
Compiler: TypeAlias = Callable[[str, tuple[str, ...], str], bytes]


def compile_opencl_c(source: str, build_options: tuple[str, ...], source_name: str) -> bytes:
    """Compile OpenCL C to unoptimised SPIR-64 bitcode.

    Args:
        source: OpenCL C text.
        build_options: Options such as `-DTILE=16` or `-I include`, with quotes as in a shell.
        source_name: What to call the source in messages.

    Raises:
        SourceError: The source does not compile, an option is not allowed, or there is no compiler.
    """
    words = _option_words(build_options)
    clang = os.environ.get(CLANG_VARIABLE)
    compiler = _clang(clang) if clang else _oclgrind() or _clang("clang")
    if compiler is not None:
        with _sub_group_header(source, words) as more:
            return compiler(source, (*more, *words), source_name)
    if clang:
        raise SourceError(
            f"{CLANG_VARIABLE} is {clang!r}, which is no program on the PATH nor a file that can be run; give the name "
            "or the path of a clang, such as clang-19"
        )
    raise SourceError(
        "no compiler of OpenCL C: install Oclgrind's wheel (pip install 'pyopencl[oclgrind]', x86-64 Linux), put clang "
        f"on the PATH, or name one in {CLANG_VARIABLE}"
    )


@contextmanager
def _sub_group_header(source: str, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Options that declare the sub-group functions to a source that speaks of them; none for any other."""
    text = declarations(source, words)
    if not text:
        yield ()
        return
    with tempfile.TemporaryDirectory(prefix="perfvec-") as folder:
        header = Path(folder) / "sub_groups.h"
        header.write_text(text, encoding="utf-8")
        yield "-include", str(header)


def _option_words(build_options: tuple[str, ...]) -> tuple[str, ...]:
    """Split options into words, a value in the same word as its option."""
    try:
        words = iter([word for text in build_options for word in shlex.split(text)])
    except ValueError as error:
        raise SourceError(
            f"build options {build_options} cannot be split into words ({error}); close quotes"
        ) from error
    joined = []
    for word in words:
        if _WITH_VALUE.fullmatch(word):
            joined += [word, next(words, "")] if word == "-include" else [word + next(words, "")]
        elif _WITH_VALUE.match(word) or _ALONE.fullmatch(word):
            joined.append(word)
        else:
            raise SourceError(
                f"{word!r} is no build option that is allowed; allowed are -D, -U, -I and -include with a value, -w, "
                "-W..., -O..., -f... and -cl-..."
            )
    return tuple(joined)


@cache
def _oclgrind() -> Compiler | None:
    try:
        import pyopencl as cl

        platform = next(p for p in cl.get_platforms() if p.name == _OCLGRIND_PLATFORM)
    except (ImportError, StopIteration):
        return None
    except Exception:  # pyopencl raises LogicError where no platform at all is registered
        return None
    context = cl.Context(platform.get_devices())

    def compile_with_oclgrind(source: str, words: tuple[str, ...], source_name: str) -> bytes:
        # The plain program: pyopencl's own build() adds options, a cache and a constant that changes each time.
        program = cl._cl._Program(context, source)  # pyright: ignore
        failure = None
        try:
            with _options_text(words) as options, _silenced_stderr():
                program._build(options.encode(), context.devices)
        except cl.Error as error:
            failure = error
        log = str(program.get_build_info(context.devices[0], cl.program_build_info.LOG)).strip("\x00\n ")
        # It does not know of -Werror.
        if failure or ("-Werror" in words and "-w" not in words and ": warning: " in log):
            raise _source_error(source_name, log.replace("input.cl", source_name) or str(failure)) from failure
        binaries: list[bytes] = program.get_info(cl.program_info.BINARIES)  # pyright: ignore
        return binaries[0]

    return compile_with_oclgrind


@contextmanager
def _options_text(words: tuple[str, ...]) -> Iterator[str]:
    """Oclgrind's options as one text: it keeps spaces between quotes, and takes no quotes in a macro's value."""
    with tempfile.TemporaryDirectory(prefix="perfvec-") as folder:
        quoted = [word for word in words if word.startswith("-D") and re.search(r'[\s"\\]', word)]
        others = [f'"{word}"' if " " in word else word for word in words if word not in quoted]
        if quoted:
            header = Path(folder) / "macros.h"
            header.write_text(
                "".join(f"#define {word[2:].replace('=', ' ', 1)}\n" for word in quoted), encoding="utf-8"
            )
            others = ["-include", str(header), *others]
        yield " ".join(("-cl-opt-disable", *_NO_ASSEMBLY, *others))


@contextmanager
def _silenced_stderr() -> Iterator[None]:
    """Keep the compiler's own count of errors off the terminal: the message that is raised has them all."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@cache
def _clang(name: str) -> Compiler | None:
    clang = shutil.which(name)
    if clang is None:
        return None

    def compile_with_clang(source: str, words: tuple[str, ...], source_name: str) -> bytes:
        with tempfile.TemporaryDirectory(prefix="perfvec-") as folder:
            path = Path(folder) / "kernel.cl"
            path.write_text(source, encoding="utf-8")
            output = Path(folder) / "kernel.bc"
            command = [
                clang, "-x", "cl", "-cl-std=CL1.2", "-O0", "-gline-tables-only", "-emit-llvm", "-c",
                "-target", "spir64-unknown-unknown", "-Xclang", "-finclude-default-header", "-fno-discard-value-names",
                *_NO_ASSEMBLY, *words, str(path), "-o", str(output),
            ]  # fmt: skip
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode or not output.is_file():
                log = result.stderr.replace(str(path), source_name).strip()
                raise _source_error(source_name, log or f"{clang} wrote nothing; is it a clang?")
            return output.read_bytes()

    return compile_with_clang


def _source_error(source_name: str, log: str) -> SourceError:
    hint = next((f"\nHint: {hint}." for pattern, hint in _HINTS if re.search(pattern, log)), "")
    return SourceError(f"{source_name} does not compile:\n{log}{hint}")
