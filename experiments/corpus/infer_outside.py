"""`python -m experiments.corpus.infer_outside PATH...`: launches for kernels of unknown origin.

PATH is a folder, a file of OpenCL C or a CSV table with a column of sources; `--packages` adds the kernels inside
installed Python packages. Each kernel that gets no launch is named with its cause. The last line is JSON: kernels by
reason, the share of the sources that compile all of whose kernels get launches, for packages the same of each, and the
time. Sources of packages are compiled with what they lack, as far as it is found (`perfvec.corpus.completion`); a
kernel that ends or holds its process costs itself alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from perfvec.corpus.inference import DEFAULT_GLOBAL_SIZES
from perfvec.corpus.outside import PACKAGES, OutsideSource, load_packages, load_sources, package_folders
from perfvec.corpus.survey import NO_KERNEL, NOT_COMPILED, OK, Outcome, count_reasons, survey
from perfvec.errors import PerfVecError

_SHOWN = 240  # characters of a cause
_SMALL_SIZES = ((1536,), (48, 80), (8, 24, 20))  # by dimensions; not what anything was tuned for
_EVERY_GROUP = 1 << 30


def share_of_sources(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    """Sources all of whose kernels get launches, and sources that compile and have kernels."""
    reasons: dict[str, set[str]] = {}
    for outcome in outcomes:
        reasons.setdefault(outcome.source, set()).add(outcome.reason)
    compiled = [found for found in reasons.values() if not found & {NO_KERNEL, NOT_COMPILED}]
    return sum(found == {OK} for found in compiled), len(compiled)


def by_package(outcomes: Sequence[Outcome]) -> dict[str, dict[str, int]]:
    """What came of the sources of each package: the first part of their names."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.source.partition("/")[0], []).append(outcome)
    table = {}
    for name, found in groups.items():
        good, compiled = share_of_sources(found)
        table[name] = {
            "sources": len({outcome.source for outcome in found}),
            "sources_compiled": compiled,
            "sources_with_launches": good,
            "kernels": sum(bool(outcome.kernel_name) for outcome in found),
            "kernels_with_launches": sum(outcome.reason == OK for outcome in found),
        }
    return table


def main() -> int:
    """Infer launches and print what came of each kernel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="folders, files or tables of sources")
    parser.add_argument(
        "--packages",
        nargs="*",
        choices=PACKAGES,
        metavar="NAME",
        help="also the kernels inside installed packages, of all that are known where none is named",
    )
    parser.add_argument("--complete", action="store_true", help="give sources what they lack; so with --packages")
    parser.add_argument("--processes", type=int, default=1, help="processes that share the work")
    parser.add_argument("--groups", type=int, default=64, help="work-groups of each launch that are run once more")
    parser.add_argument("--every-group", action="store_true", help="small launches, and all their work-groups are run")
    parser.add_argument("--all", action="store_true", help="name also sources that do not compile or have no kernel")
    options = parser.parse_args()
    if not options.paths and options.packages is None:
        parser.error("give a PATH or --packages")
    start = time.perf_counter()
    try:
        sources: list[OutsideSource] = [source for path in options.paths for source in load_sources(path)]
    except PerfVecError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    packages = None if options.packages is None else tuple(options.packages) or PACKAGES
    if packages is not None:
        found, missing = load_packages(packages)
        sources += found
        sys.stdout.write(f"packages that are not installed: {', '.join(missing) or 'none'}\n")
    outcomes = []
    sizes, groups = (_SMALL_SIZES, _EVERY_GROUP) if options.every_group else (DEFAULT_GLOBAL_SIZES, options.groups)
    for outcome in survey(
        sources,
        global_sizes=sizes,
        verified_groups=groups,
        num_processes=options.processes,
        completed_from=package_folders() if packages is not None or options.complete else None,
    ):
        outcomes.append(outcome)
        is_shown = outcome.reason != OK and (options.all or outcome.reason not in (NO_KERNEL, NOT_COMPILED))
        if is_shown:
            cause = " ".join(outcome.cause.split())[:_SHOWN]
            sys.stdout.write(f"{outcome.source} {outcome.kernel_name}: {outcome.reason}: {cause}\n")
            sys.stdout.flush()
    wall_s = time.perf_counter() - start
    counts, (good, compiled) = count_reasons(outcomes), share_of_sources(outcomes)
    for reason, count in counts.items():
        sys.stdout.write(f"{count:6} {reason}\n")
    repaired = sum(bool(o.inferred is not None and o.inferred.repairs) for o in outcomes)
    sys.stdout.write(f"{repaired:6} of those that run needed repairs by check runs\n")
    helped = len({outcome.source for outcome in outcomes if outcome.added})
    sys.stdout.write(f"{helped:6} sources compile with what they lacked: headers, functions, macros\n")
    record = {
        "sources": len({outcome.source for outcome in outcomes}),
        "sources_compiled": compiled,
        "sources_with_launches": good,
        "share": good / compiled if compiled else None,
        "sources_completed": helped,
        "kernels_by_reason": counts,
        "repaired": repaired,
        **({"packages": by_package(outcomes)} if packages is not None else {}),
        "wall_s": round(wall_s, 1),
    }
    sys.stdout.write(json.dumps(record) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
