"""In a container of one CPU and 512 MB, on a machine of any size."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time

import numpy as np
import pytest
from PIL import Image

from cgroups import limited

MIB = 2**20


def make_photos(folder, count):
    """JPEGs of 500 x 375, smooth enough to compress as photographs do."""
    coarse = np.random.default_rng(3).integers(0, 256, (count, 6, 8, 3), dtype=np.uint8)
    for number in range(count):
        path = folder / "all" / f"{number:05}.jpg"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(coarse[number]).resize((500, 375), Image.BICUBIC).save(path, quality=90)


def test_one_cpu_and_512_megabytes(tmp_path, serve):
    make_photos(tmp_path, 600)
    served = serve(tmp_path)
    with limited(1, 512 * MIB) as group:
        if group is None:
            pytest.skip("making a control group with limits needs root and a writable cgroup")
        bench = [os.environ.get("LEAT_BINARY", "leat"), "bench", served.url, "--json",
                 "--no-sign-request", "--endpoint-url", served.bucket.url, "--epochs", "3",
                 "--global-batch-size", "64", "--ops",
                 "decode_image,random_resized_crop:224,normalize:imagenet"]  # fmt: skip
        begin = time.monotonic()
        done = subprocess.run(
            ["sh", "-c", f"{group.enter_command()} && exec {shlex.join(bench)}"],
            capture_output=True, text=True, timeout=80)  # fmt: skip
        seconds = time.monotonic() - begin

        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        assert result["settings"]["threads"] == 1
        assert result["settings"]["memory"] == "128 MiB"
        assert [epoch["samples"] for epoch in result["epochs"]] == [576] * 3
        assert group.out_of_memory_kills() == 0
        # More threads than CPUs would stand still for half of the time and more.
        assert group.throttled_seconds() < 0.25 * seconds
        print({"seconds": seconds, "throttled": group.throttled_seconds(),
               "peak_rss_bytes": result["epochs"][-1]["peak_rss_bytes"]})  # fmt: skip
