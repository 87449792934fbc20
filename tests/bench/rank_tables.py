#!/usr/bin/env python3
"""How long a large rank table takes to validate, beside parsing it alone and jsonschema alone.

The whole command is measured, from its start to its end, with the largest amount of memory that it
held.  The figures are medians of several runs taken in turns; what can be compared with another
machine is their ratio.

  make bench
"""

import json
import os
import statistics
import sys
import tempfile
import time

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
SERVERS = (125, 1250, 12500)  # with 8 devices each
RUNS = 3

PARSE = "import json, sys; json.load(open(sys.argv[1], encoding='utf-8'))"
JSONSCHEMA = (
    "import json, sys; from jsonschema import Draft202012Validator as V; "
    "V(json.load(open(sys.argv[2]))).validate(json.load(open(sys.argv[1], encoding='utf-8')))"
)


def main():
    """Measures and prints; returns the exit code."""
    print(
        f"{'ranks':>8} {'MB':>6} {'validate':>10} {'parse':>8} {'jsonschema':>11} {'memory':>8} {'ratio to parse':>15}"
    )
    for servers in SERVERS:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "table.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(table(servers), file, indent=4)
            size = os.path.getsize(path) / 1e6
            figures = measure(path)
        seconds = {name: statistics.median(each[0] for each in runs) for name, runs in figures.items()}
        memory = max(each[1] for each in figures["validate"])
        print(
            f"{servers * 8:>8} {size:>6.1f} {seconds['validate']:>8.3f} s {seconds['parse']:>6.3f} s "
            f"{seconds['jsonschema']:>9.3f} s {memory:>5.0f} MB {seconds['validate'] / seconds['parse']:>15.1f}"
        )
    return 0


def table(servers):
    """A good table, in the dictionary order of server_id that MindSpore asks for."""
    names = sorted(f"10.{n >> 14 & 127}.{n >> 7 & 127}.{(n & 127) + 1}" for n in range(servers))
    entries = []
    for n, name in enumerate(names, 1):
        # a device has the same subnet on every server
        devices = [
            {"device_id": str(k), "device_ip": f"192.{160 + k}.{n >> 8}.{n & 255}", "rank_id": str(8 * n - 8 + k)}
            for k in range(8)
        ]
        entries.append({"server_id": name, "device": devices, "host_nic_ip": "reserve"})
    return {"version": "1.0", "server_count": str(servers), "server_list": entries, "status": "completed"}


def measure(path):
    """{command: [(seconds, MB)]} of several runs, taken in turns."""
    python = sys.executable
    schema = os.path.join(PROJECT, "schemas", "rank_table_v1.0.schema.json")
    commands = {
        "validate": [python, os.path.join(PROJECT, "hccl_tools", "validate_hccl.py"), path],
        "parse": [python, "-c", PARSE, path],
        "jsonschema": [python, "-c", JSONSCHEMA, path, schema],
    }
    figures = {name: [] for name in commands}
    for _ in range(RUNS):
        for name, command in commands.items():
            figures[name].append(one_run(command))
    return figures


def one_run(command):
    """(seconds, MB) of one command, which must succeed."""
    began = time.perf_counter()
    process = os.posix_spawn(
        command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    )
    _, status, used = os.wait4(process, 0)
    seconds = time.perf_counter() - began
    if status:
        raise SystemExit(f"rank_tables.py: {' '.join(command)} ended with status {status}")
    return seconds, used.ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
