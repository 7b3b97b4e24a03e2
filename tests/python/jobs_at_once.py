"""Several trainings on one dataset at once, each a process of its own."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator

# Delivers some epochs and says what came; between two, and before the first, it waits
# for a line if it is told to.
JOB = """
import json, sys, leat
told = json.loads(sys.argv[1])
options = told["options"]
options["cache"] = leat.Cache(**told["cache"])
options["ops"] = [getattr(leat.ops, name)(*rest) for name, *rest in told["ops"]]
loader = leat.Loader(told["url"], ids=True, epochs=told["epochs"],
                     **{"shuffle": True, **options})
print(json.dumps("ready"), flush=True)
sys.stdin.readline()
ids = []
for _ in range(told["epochs"]):
    ids.append([int(i) for batch in loader for i in batch["index"]])
print(json.dumps({"ids": ids, "stats": loader.stats(), "metrics": loader.metrics()}), flush=True)
sys.stdin.readline()
loader.close()
"""


class Job:
    def __init__(self, told: dict) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", JOB, json.dumps(told)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def hear(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def go(self) -> None:
        self.process.stdin.write("\n")
        self.process.stdin.flush()


@contextlib.contextmanager
def jobs(served, cache: dict, of_each: list[dict], epochs=1, ops=()) -> Iterator[list[Job]]:
    """Jobs with these options, each of them ready; ended at last, however that is."""
    running = []
    try:
        for options in of_each:
            options = {**served.options, "drop_last": False, **options}
            running.append(
                Job({"url": served.url, "options": options, "cache": cache, "epochs": epochs, "ops": ops})
            )
            assert running[-1].hear() == "ready"
        yield running
    finally:
        for job in running:
            job.process.kill()
            job.process.communicate()


def run_at_once(served, cache: dict, of_each: list[dict], **more) -> list[dict]:
    """The deliveries of each of them, all at the same time."""
    with jobs(served, cache, of_each, **more) as running:
        served.reset()
        for job in running:
            job.go()
        found = [job.hear() for job in running]
        for job in running:
            job.go()
        for job in running:
            assert job.process.wait(30) == 0, job.process.stderr.read()
        return found
