"""Known failures of Slurm, mpirun, ssh, Kubernetes and torchrun: cluster_logs.yaml has a log of each and its cause."""

from pathlib import Path

import yaml
from logs.known import ENTRIES
from suite.cases import for_each

from tools.diagnosis import job_logs

LOGS = yaml.safe_load((Path(__file__).parent / "cluster_logs.yaml").read_text(encoding="utf-8"))


def codes_of(tmp_path, text):
    log = tmp_path / "job.log"
    log.write_text(text, encoding="utf-8")
    return [fault.entry.code for fault in job_logs.of_paths([str(log)], ENTRIES).faults]


@for_each("name", LOGS)
def test_the_cause_comes_first_and_nothing_else_is_told(name, tmp_path):
    case = LOGS[name]
    first = case["first"] if isinstance(case["first"], list) else [case["first"]]
    codes = codes_of(tmp_path, case["log"])
    assert (codes[0] if codes else None) in first, codes
    assert sorted(codes[1:]) == sorted(set(case.get("also", [])) - set(codes[:1])), codes


@for_each("name", [name for name in LOGS if LOGS[name]["first"]])
def test_times_before_the_lines_change_nothing(name, tmp_path):
    """As "kubectl logs --timestamps" and "mpirun --timestamp-output" have them."""
    plain = codes_of(tmp_path, LOGS[name]["log"])
    lines = LOGS[name]["log"].splitlines()
    timed = codes_of(tmp_path, "".join(f"2025-05-06T07:08:09.{n:06}Z {line}\n" for n, line in enumerate(lines)))
    assert timed[:1] == plain[:1]
