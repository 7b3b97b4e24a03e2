"""A parameter server, whose consumers take the next batch: first come, first served.

    python examples/first_come.py s3://mine/digits/train [CONSUMERS]

One process reads the data and holds the parameters. A consumer asks for a batch, and brings the
gradient of the batch before, so a slow one takes fewer batches. If it dies, another gets its batch.
The consumer of a batch depends on time; the batches themselves follow from the seed, as always.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import secrets
import sys
import threading
from multiprocessing.connection import Client, Connection, Listener
from typing import Any, NamedTuple

import leat
import numpy as np

EPOCHS = 3
CLASSES = 10


class Step(NamedTuple):
    before: dict[str, Any]
    """The state of the loader before the batch."""
    batch: dict[str, np.ndarray]


class FirstCome:
    """Hands out the batches of this many epochs. Threads: any.

    Args:
        state: what `state` gave in an earlier run.
    """

    def __init__(self, loader: leat.Loader, epochs: int, state: dict[str, Any] | None = None) -> None:
        self._loader = loader
        self._changed = threading.Condition()
        self._again: list[Step] = []
        self._given: list[Step] = []
        begun = 0
        if state is not None:
            for before in state["given"]:
                loader.load_state_dict(before)
                self._again.append(Step(before, next(iter(loader))))
            loader.load_state_dict(state["next"])
            begun = state["next"]["epoch"]
        self._batches = itertools.chain.from_iterable(loader for _ in range(begun, epochs))
        self.is_done = False

    def take(self) -> Step | None:
        """The next batch. None once all are done: until then, one that was given may come back."""
        with self._changed:
            while not self._again:
                before = self._loader.state_dict()
                batch = next(self._batches, None)
                if batch is not None:
                    self._again.append(Step(before, batch))
                elif self._given:
                    self._changed.wait()
                else:
                    self.is_done = True
                    return None
            self._given.append(self._again.pop(0))
            return self._given[-1]

    def end(self, step: Step, *, is_done: bool) -> None:
        """`step` is done, or its consumer is gone and another one takes it."""
        with self._changed:
            self._given = [each for each in self._given if each is not step]
            if not is_done:
                self._again.append(step)
            self._changed.notify_all()

    def state(self) -> dict[str, Any]:
        """A few numbers for each batch that is not done."""
        with self._changed:
            return {"next": self._loader.state_dict(), "given": [step.before for step in self._again + self._given]}


class Parameters:
    """A linear classifier. Threads: any."""

    def __init__(self, pixels: int) -> None:
        self._turn = threading.Lock()
        self._weights = np.zeros((pixels, CLASSES))
        self.losses: list[float] = []

    def now(self) -> np.ndarray:
        with self._turn:
            return self._weights.copy()

    def apply(self, gradient: np.ndarray, loss: float) -> None:
        with self._turn:
            self._weights -= 0.2 * gradient
            self.losses.append(loss)


def serve(connection: Connection, batches: FirstCome, parameters: Parameters) -> None:
    """One consumer, to its end."""
    step = None
    try:
        while True:
            told = connection.recv()
            if step is not None:
                parameters.apply(*told)
                batches.end(step, is_done=True)
            step = batches.take()
            connection.send(None if step is None else (parameters.now(), step.batch))
            if step is None:
                return
    except (EOFError, ConnectionError):
        if step is not None:
            batches.end(step, is_done=False)


def consume(address: Any, key: bytes) -> None:
    with Client(address, authkey=key) as server:
        server.send(None)
        while (told := server.recv()) is not None:
            server.send(gradient_of(*told))


def gradient_of(weights: np.ndarray, batch: dict[str, np.ndarray]) -> tuple[np.ndarray, float]:
    pixels = batch["image"].reshape(len(batch["label"]), -1) / 255 - 0.5
    scores = pixels @ weights
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    rows = np.arange(len(shares))
    loss = float(-np.log(shares[rows, batch["label"]]).mean())
    shares[rows, batch["label"]] -= 1
    return pixels.T @ shares / len(shares), loss


def main(url: str, consumers: int) -> None:
    key = secrets.token_bytes(16)
    loader = leat.Loader(
        url, batch_size=16, train=True, fields=("image", "label"), ops=[leat.ops.DecodeImage()], batch="dict",
        output="numpy", epochs=EPOCHS, rank=0, world_size=1,
    )  # fmt: skip
    with loader, Listener(("127.0.0.1", 0), authkey=key) as listener:
        parameters = Parameters(loader.peek()["image"][0].size)
        batches = FirstCome(loader, EPOCHS)

        def welcome() -> None:
            with contextlib.suppress(OSError):  # The listener is closed at the end.
                while True:
                    consumer = listener.accept()
                    threading.Thread(target=serve, args=(consumer, batches, parameters), daemon=True).start()

        threading.Thread(target=welcome, daemon=True).start()
        # An interpreter of their own: this one has threads.
        spawn = multiprocessing.get_context("spawn")
        processes = [spawn.Process(target=consume, args=(listener.address, key)) for _ in range(consumers)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
    if not batches.is_done:
        sys.exit(f"all {consumers} consumers are gone, and batches are left")
    steps = len(loader)
    for epoch in range(EPOCHS):
        print(f"epoch {epoch}: loss {np.mean(parameters.losses[epoch * steps : (epoch + 1) * steps]):.9f}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3)
