"""Real ranks for tests: jobs of MindSpore processes, started by the project's own scripts.

Most of a job's time goes into starting up, so jobs that need no process of their own are done in turn by the same
ranks.  Each saves in a folder of its own, learns a small part of scikit-learn's digits, and gives the weights that
every rank saved last.
"""

import contextlib
import functools
import glob
import json
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
IN_TURN = PROJECT / "tests" / "fixtures" / "trains_in_turn.py"

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
    fixed = ["--device_target", "CPU", "--import_once"]
    return ["bash", str(script), *fixed, *trainer, *options, str(config), "--", *words]


def job(name, ranks, config, words, code=0, **variables):
    """A job for in_turn(), of all its ranks or of one, which must end with that exit code."""
    words = [*words, "system.device_target=CPU", *(["system.distribute=False"] if ranks == 1 else [])]
    return _in_turn(name, ranks, "train", ["--config", config, "-o", *words], code, variables)


def conversion(name, *words):
    """A job for in_turn(): tools/convert_ckpt.py."""
    return _in_turn(name, 1, "convert_ckpt", words, 0, {})


def _in_turn(name, ranks, main, words, code, variables):
    arguments = [str(word) for word in words]
    return {"name": name, "ranks": ranks, "main": main, "arguments": arguments, "code": code, "variables": variables}


def in_turn(folder, ranks, jobs):
    """Does the jobs, one after the other, in one launch of so many ranks; returns {name: [what each rank printed]}."""
    (folder / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
    script = PROJECT / "scripts" / "launch.sh"
    fixed = ["--device_target", "CPU", "--import_once", "-n", str(ranks), "--console", "none"]
    # tools/train.py sets the variable itself, but here MindSpore is imported before
    variables = {**_environment(), "ONEDNN_MAX_CPU_ISA": "AVX2"}
    done = run(folder, ["bash", str(script), *fixed, str(IN_TURN), str(folder / "jobs.json")], variables)
    wrong, printed = [], {}
    for each in jobs:
        paths = [folder / f"{each['name']}.{rank}" for rank in range(each["ranks"])]
        printed[each["name"]] = [_text(f"{path}.txt") for path in paths]
        if {_text(f"{path}.code") for path in paths} != {f"{each['code']}\n"}:
            wrong.append((each["name"], printed[each["name"]]))
    assert done.returncode == 0 and not wrong, (wrong, done.stdout)
    return printed


def _text(path):
    return pathlib.Path(path).read_text(encoding="utf-8") if os.path.exists(path) else ""


def train(folder, ranks, config, words, resume=False, code=0, trainer=None):
    """Runs a job in `folder` to its end; returns all its output.

    resume: with RESUME=1; code: the exit code it must have; trainer: instead of tools/train.py.
    """
    variables = {**_environment(), **({"RESUME": "1"} if resume else {})}
    done = run(folder, command(ranks, config, words, trainer), variables)
    assert done.returncode == code, done.stdout
    return done.stdout


def run(folder, words, variables):
    """A command that ends by itself, with all its output in stdout."""
    return subprocess.run(
        words,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )


def start(folder, ranks, config, words, options=(), trainer=None, **variables):
    """Starts such a job in the background, in its own group, with the launcher's `options`; returns the Popen."""
    with open(folder / "output.txt", "w", encoding="utf-8") as output:
        return subprocess.Popen(
            command(ranks, config, words, trainer, options),
            cwd=folder,
            env={**_environment(), **variables},
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
