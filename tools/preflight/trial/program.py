"""The program of a trial's ranks: joins, reduces, multiplies and reads, and prints one line of JSON per measurement.

It runs on each host as a user's program does, and needs only MindSpore and NumPy.  Each line has the number of the
trial.  So nothing else that a rank prints is taken for a measurement.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

SIZES = {"allreduce_1k": 1 << 10, "allreduce_1m": 1 << 20, "allreduce_16m": 1 << 24}  # bytes
_PAIR = SIZES["allreduce_1m"] * 4
_SIDE = 1024  # of the matrices
_TIMES = 4  # so often; the fastest counts, and the first one compiles
_CHUNK = 1 << 20


class Teller:
    """Prints the measures of this rank."""

    def __init__(self, number: str) -> None:
        self.rank = int(os.environ.get("RANK_ID", "0"))  # before MindSpore is imported, which may change both
        self.device = int(os.environ.get("DEVICE_ID", "0"))
        self._number = number
        self._told: list[str] = []

    def tell(self, measure: str, seconds: float, **more: int) -> None:
        """Prints one line."""
        told = {"trial": self._number, "rank": self.rank, "device": self.device, "measure": measure}
        self._told.append(json.dumps({**told, "seconds": round(seconds, 7), **more}))
        print(self._told[-1], flush=True)

    def again(self) -> None:
        """Prints all lines again: from a log that it cannot see, the launcher's host gets only the last lines."""
        print("\n".join(self._told), flush=True)

    def fastest(self, measure: str, work: Callable[[], object], times: int = _TIMES, **more: int) -> None:
        """Does it several times, and returns the shortest time."""
        self.tell(measure, min(_timed(work) for _ in range(times)), **more)


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main(argv: Sequence[str] | None = None) -> int:
    """What one rank does."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trial", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--data", default="")
    parser.add_argument("--megabytes", type=int, default=64)
    options = parser.parse_args(argv)
    teller = Teller(options.trial)
    with tempfile.TemporaryDirectory(prefix="preflight_trial_") as folder:
        os.chdir(folder)  # where the launch runs, MindSpore may not write, and its files there are not needed
        try:
            _measure(options, teller)
        finally:
            os.chdir("/")
    return 0


def _measure(options: argparse.Namespace, teller: Teller) -> None:
    """All that the rank does, and what each part of it takes."""
    server = int(os.environ.get("SERVER_ID", "0"))
    began = time.perf_counter()
    ranks = _join(options.target, teller.device)
    teller.tell("join", time.perf_counter() - began)
    if ranks > 1:
        _reduce(teller, ranks)
        _pairs(teller, server)
    _multiply(teller)
    if options.data:
        read(teller, options.data, options.megabytes << 20)
    if ranks > 1:
        _together(ranks)
    teller.tell("end", time.perf_counter() - began)
    teller.again()


def _join(target: str, device: int) -> int:
    """Sets the device up and joins the job; the number of ranks."""
    import mindspore
    from mindspore import communication

    words: tuple[Any, ...] = (target,) if target == "CPU" else (target, device)
    if hasattr(mindspore, "set_device"):
        mindspore.set_device(*words)
    else:
        mindspore.set_context(device_target=target)
    if int(os.environ.get("RANK_SIZE", "1")) == 1:
        return 1
    communication.init()
    return int(communication.get_group_size())


def _ones(size: int) -> Any:
    import numpy
    from mindspore import Tensor

    return Tensor(numpy.ones(size // 4, numpy.float32))


def _sum(reduce: Callable[[Any], Any], data: Any) -> float:
    return float(reduce(data).asnumpy().flat[0])


def _reduce(teller: Teller, ranks: int) -> None:
    """AllReduce of all ranks; a wrong sum is a failure."""
    from mindspore import ops

    reduce = ops.AllReduce()
    for measure, size in SIZES.items():
        data = _ones(size)
        _right(_sum(reduce, data), ranks)
        teller.fastest(measure, lambda data=data: _sum(reduce, data))  # type: ignore[misc]


def _right(found: float, expected: float) -> None:
    if found != expected:
        raise RuntimeError(f"a sum over ranks is {found:g} and not {expected:g}")


def _pairs(teller: Teller, server: int) -> None:
    """AllReduce of two hosts at a time, each with its neighbours: of each host the first rank."""
    import numpy
    from mindspore import Tensor, communication, ops

    gathered = ops.AllGather()(Tensor(numpy.array([server], numpy.int32))).asnumpy().tolist()
    first = {host: gathered.index(host) for host in sorted(set(gathered))}
    everybody = ops.AllReduce()
    small = _ones(SIZES["allreduce_1k"])
    for number, pairs in enumerate(rounds(list(first))):
        mine = [pair for pair in pairs if teller.rank in (first[pair[0]], first[pair[1]])]
        for pair in mine:
            group = f"trial_pair_{pair[0]}_{pair[1]}"
            communication.create_group(group, sorted(first[host] for host in pair))
            reduce, data = ops.AllReduce(group=group), _ones(_PAIR)
            _right(_sum(reduce, data), 2)
            peer = pair[0] if pair[1] == server else pair[1]
            teller.fastest(f"pair_{number}", lambda r=reduce, d=data: _sum(r, d), peer=peer)  # type: ignore[misc]
        _sum(everybody, small)  # the next round begins when this one has ended everywhere


def rounds(hosts: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
    """A ring of hosts as rounds of pairs, in which no host comes twice."""
    number = len(hosts)
    edges = [(hosts[at], hosts[(at + 1) % number]) for at in range(number if number > 2 else number - 1)]
    last = edges.pop() if number > 2 and number % 2 else None
    yield from filter(None, (edges[::2], edges[1::2], [last] if last else []))


def _multiply(teller: Teller) -> None:
    """One matmul."""
    import numpy
    from mindspore import Tensor, ops

    matrix = Tensor(numpy.full((_SIDE, _SIDE), 0.5, numpy.float32))
    multiply = ops.MatMul()

    def work() -> None:
        _right(float(multiply(matrix, matrix).asnumpy()[0, 0]), _SIDE / 4)

    work()
    teller.fastest("matmul", work)


def read(teller: Teller, path: str, most: int) -> None:
    """Reads this amount of data, and returns the time per megabyte."""
    began, done = time.perf_counter(), 0
    for name in _files(path):
        with open(name, "rb", buffering=0) as file:
            while done < most and (data := file.read(min(_CHUNK, most - done))):
                done += len(data)
        if done >= most:
            break
    if done:
        teller.tell("read", (time.perf_counter() - began) / done * (1 << 20), bytes=done)


def _files(path: str) -> Iterator[str]:
    """The file, or the files of the folder, always in the same order."""
    if os.path.isfile(path):
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders.sort()
        yield from (found for found in (os.path.join(folder, name) for name in sorted(names)) if os.path.isfile(found))


def _together(ranks: int) -> None:
    """No rank leaves while others still talk with it."""
    from mindspore import ops

    _right(_sum(ops.AllReduce(), _ones(SIZES["allreduce_1k"])), ranks)


if __name__ == "__main__":
    sys.exit(main())
