"""Runs scripts of docs/coming-from/tasks, each in a fork of a process that has its library imported.

Reads a line of JSON for each job: scripts that run at once, each with its folder, its variables and
the files that take what it prints. Writes a line for each job: how they ended. The libraries take
seconds to import, and scripts a part of one.

Four things are other than where a user runs them:
- LitData's client is allowed HTTP, which the test's bucket speaks and no variable allows.
- s3torchconnector is given the bucket's address, which it does not take from a variable.
- LitData's workers are forked, as in notebooks: spawned ones would import torch anew.
- Pillow decodes the JPEGs that LitData gives to torchvision, whose compiled part may not be there
  (torchvision_apart.py).
"""

from __future__ import annotations

import io
import json
import os
import runpy
import signal
import sys
import time
import traceback

import numpy as np
import torch
from PIL import Image

import torchvision_apart

SECONDS = 120


def load_leat() -> None:
    import leat  # noqa: F401


def decode_jpeg(data: torch.Tensor, **_options) -> torch.Tensor:
    return torch.from_numpy(np.array(Image.open(io.BytesIO(data.numpy().tobytes())))).permute(2, 0, 1)


def load_litdata() -> None:
    import litdata.processing.data_processor
    import litdata.streaming.downloader
    import torchvision.io

    torchvision.io.decode_jpeg = decode_jpeg
    litdata.streaming.downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = "true"
    litdata.processing.data_processor.in_notebook = lambda: True


def load_streaming() -> None:
    import streaming  # noqa: F401


def load_torch() -> None:
    from s3torchconnector import S3MapDataset

    for name in ("from_prefix", "from_objects"):
        def at_the_bucket(*arguments, _made_by=getattr(S3MapDataset, name), **options):
            return _made_by(*arguments, endpoint=os.environ["AWS_ENDPOINT_URL"], **options)

        setattr(S3MapDataset, name, at_the_bucket)


def run(script: dict) -> None:
    """Never returns."""
    status = 1
    try:
        os.chdir(script["folder"])
        os.environ.update(script["environment"])
        for descriptor, name in ((1, script["printed"]), (2, script["errors"])):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
        sys.argv = [script["path"]]
        runpy.run_path(script["path"], run_name="__main__")
        status = 0
    except SystemExit as ended:
        status = 0 if ended.code == "preempted" else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def run_all(scripts: list[dict]) -> list[int]:
    """How each ended: 0 well."""
    children = []
    for script in scripts:
        child = os.fork()
        if child == 0:
            os.setsid()  # So that its own processes can be ended with it.
            run(script)
        children.append(child)
    ends: dict[int, int] = {}
    deadline = time.monotonic() + SECONDS
    while len(ends) < len(children):
        child, status = os.waitpid(-1, os.WNOHANG)
        if child:
            ends[child] = os.waitstatus_to_exitcode(status)
        elif time.monotonic() > deadline:
            for late in set(children) - set(ends):
                os.killpg(late, signal.SIGKILL)
            deadline += SECONDS
        else:
            time.sleep(0.005)
    return [ends[child] for child in children]


def main() -> None:
    libraries = sys.argv[1:]
    if libraries != ["leat"]:
        torchvision_apart.load()
        import torchvision.transforms.v2  # noqa: F401
    for library in libraries:
        globals()[f"load_{library}"]()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(run_all(json.loads(line))), file=answers)
    os._exit(0)  # Their threads and hooks at exit take seconds.


if __name__ == "__main__":
    main()
