"""Real ranks for tests: jobs of MindSpore processes, started by the project's own scripts.

A job takes 8 to 20 s, most of it for starting up.  Each runs in a folder of its own, on a small part of
scikit-learn's digits, and gives the weights that every rank saved last.
"""

import contextlib
import functools
import glob
import os
import pathlib
import re
import resource
import struct
import subprocess
import sys

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
CONFIGS = PROJECT / "configs"


slow = pytest.mark.skipif(os.environ.get("SLOW_TESTS") != "1", reason="takes long; SLOW_TESTS=1 runs it")


def digits(folder, samples, prefix="train"):
    """The first `samples` digits in MNIST's format in `folder`, to train on or (prefix t10k) held out; returns it."""
    import numpy as np
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    pixels = (images[:samples].reshape(-1, 8, 8) * 255 / 16).astype(np.uint8).repeat(4, 1).repeat(4, 2)[:, 2:-2, 2:-2]
    folder.mkdir(parents=True, exist_ok=True)
    header = struct.pack(">4I", 0x803, len(pixels), *pixels.shape[1:])
    (folder / f"{prefix}-images-idx3-ubyte").write_bytes(header + pixels.tobytes())
    (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(
        struct.pack(">2I", 0x801, len(pixels)) + labels[:samples].astype(np.uint8).tobytes()
    )
    return folder


def settings(data, checkpoints, **more):
    """The -o words of a job: `data` to train on, `checkpoints` to save in, no evaluation; a__b=1 is a.b=1."""
    found = {
        "train.dataset.dataset_root": data,
        "train.ckpt_save_dir": checkpoints,
        "train.loader.shuffle": False,
        "system.log_interval": 1,
        **{key.replace("__", "."): value for key, value in more.items()},
    }
    return [f"{key}={value}" for key, value in found.items()]


def config_without_eval(path, folder):
    """A copy of a shipped config whose section eval is cut off."""
    text = (CONFIGS / path).read_text(encoding="utf-8").partition("\neval:")[0] + "\n"
    copy = folder / "config.yaml"
    copy.write_text(text, encoding="utf-8")
    return copy


@functools.lru_cache(maxsize=1)
def _environment():
    ours = ("RANK_", "MS_", "DEVICE_", "LOG_DIR", "RESUME", "DATA_PATH", "OMP_NUM_THREADS", "GLOG_v")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**clean, "PYTHON": sys.executable, "OMP_NUM_THREADS": "1", "GLOG_v": "3"}


def command(ranks, config, words, trainer=None, options=()):
    """The command of a job: the launcher for several ranks, the trainer itself for one."""
    if ranks == 1:
        words = ["system.distribute=False", "system.device_target=CPU", *words]
        return [sys.executable, str(PROJECT / "tools" / "train.py"), "--config", str(config), "-o", *words]
    script = PROJECT / "scripts" / f"ascend{ranks}p.sh"
    trainer = ["--train_script", str(trainer)] if trainer else []
    words = words if "-o" in words else ["-o", *words]
    return ["bash", str(script), "--device_target", "CPU", *trainer, *options, str(config), "--", *words]


def train(folder, ranks, config, words, resume=False, code=0, trainer=None):
    """Runs a job in `folder` to its end; returns all its output.

    resume: with RESUME=1; code: the exit code it must have; trainer: instead of tools/train.py.
    """
    done = subprocess.run(
        command(ranks, config, words, trainer),
        cwd=folder,
        env={**_environment(), **({"RESUME": "1"} if resume else {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == code, done.stdout
    return done.stdout


def start(folder, ranks, config, words, options=()):
    """Starts such a job in the background, in its own group, with the launcher's `options`; returns the Popen."""
    with open(folder / "output.txt", "w", encoding="utf-8") as output:
        return subprocess.Popen(
            command(ranks, config, words, options=options),
            cwd=folder,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


@contextlib.contextmanager
def no_file_longer_than(size):
    """Like a full disk: this process can write no file of more than `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def weights(checkpoints, rank=0):
    """{name: array} of the newest checkpoint of a rank."""
    import mindspore as ms

    newest = max(glob.glob(f"{checkpoints}/rank_{rank}/*.ckpt"), key=os.path.getmtime)
    return {name: parameter.asnumpy() for name, parameter in ms.load_checkpoint(newest).items()}


def furthest(one, other):
    """The largest difference between two sets of weights, which must have the same names and shapes."""
    import numpy as np

    assert set(one) == set(other)
    return max(float(np.abs(one[name].astype(float) - other[name].astype(float)).max()) for name in one)


def typed(folder, *command, **variables):
    """What a script prints, as (exit code, stdout, stderr); it is typed in `folder`."""
    clean = {
        name: value for name, value in os.environ.items() if not re.match("RANK|MS_|DEVICE|DATA_PATH|LOG_DIR", name)
    }
    ended = subprocess.run(
        ["bash", *map(str, command)],
        cwd=folder,
        env={**clean, "PYTHON": sys.executable, "GLOG_v": "3", **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return ended.returncode, ended.stdout, ended.stderr
