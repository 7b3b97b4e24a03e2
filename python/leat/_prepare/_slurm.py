"""A flow as an array of Slurm: a script for sbatch, whose tasks share the units of the flow."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess

from leat._prepare._flow import Flow
from leat._prepare._state import State
from leat.errors import InvalidArgument, NotFound


def submit(flow: Flow, options: argparse.Namespace) -> None:
    """Submits the array, or prints its script.

    Raises:
        leat.InvalidArgument: the state is that of another flow; an option that no line can hold.
        leat.NotFound: there is no sbatch here.
        leat.Error: sbatch refused.
    """
    state = State(flow)
    script = script_of(flow, state, options)
    if options.is_printed:
        print(script, end="")
        return
    state.claim()
    if state.log_place:
        os.makedirs(state.log_place, exist_ok=True)  # Slurm writes there, and makes no folder.
    try:
        ended = subprocess.run(["sbatch", "--parsable"], input=script, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise NotFound("no sbatch here: call this on a node that submits jobs, or submit what --print shows") from None
    if ended.returncode:
        raise InvalidArgument(f"sbatch: {ended.stderr.strip()}")
    job = ended.stdout.strip().partition(";")[0]
    status = f"leat prepare {shlex.quote(flow.path)} --status"
    print(f"Slurm's job {job}: {options.tasks} tasks; {status} tells how far it is")


def script_of(flow: Flow, state: State, options: argparse.Namespace) -> str:
    """The script, which sbatch reads."""
    from leat.testing import find_binary

    for line in options.sbatch:
        if not re.fullmatch(r"-[^\n\r]+", line):
            raise InvalidArgument(f"--sbatch={line}: it is one option of sbatch, such as --sbatch=--partition=cpu")
    name = re.sub(r"[^\w.-]", "-", os.path.basename(flow.path).removesuffix(".toml"))
    folder = (state.log_place or os.getcwd()).replace("%", "%%")  # Slurm puts numbers in the place of %A.
    outputs = os.path.join(folder, "slurm-%A-%a.out")
    words = [os.path.abspath(find_binary()), "prepare", os.path.abspath(flow.path), "--processes",
             str(options.processes), "--retries", str(options.retries), "--lease", f"{options.lease:g}"]  # fmt: skip
    if options.watch is not None:
        words += ["--watch", f"{options.watch:g}"]
    lines = [
        "#!/bin/bash",
        f"#SBATCH --job-name=leat-{name}",
        f"#SBATCH --array=0-{options.tasks - 1}",
        "#SBATCH --ntasks=1",
        f"#SBATCH --cpus-per-task={options.processes}",
        "#SBATCH --requeue",  # A task whose node dies comes again; meanwhile the others take its units.
        "#SBATCH --open-mode=append",
        f"#SBATCH --output={_quoted(outputs)}",
        *(f"#SBATCH {line}" for line in options.sbatch),
    ]
    if options.page is not None:
        page = shlex.quote(os.path.abspath(options.page))
        lines += ["page=()", f'if [ "$SLURM_ARRAY_TASK_ID" = 0 ]; then page=(--page {page}); fi']
    lines.append(f"exec {shlex.join(words)}" + (' "${page[@]}"' if options.page is not None else ""))
    return "\n".join(lines) + "\n"


def _quoted(path: str) -> str:
    """As sbatch reads it in a line of a script.

    Raises:
        leat.InvalidArgument: nothing quotes such a path.
    """
    if re.search(r"[\n\r\"\\]", path):
        raise InvalidArgument(f"{path!r}: Slurm cannot name such a file; give a state = without these letters")
    return f'"{path}"' if re.search(r"[\s'#]", path) else path  # A comment begins at #.
