"""tools/launch/main.py as a process: what it does when the launcher has ended."""

import os
import subprocess
import sys

import launching


def test_a_plan_that_nobody_reads_ends_without_a_word(root, tmp_path):
    (tmp_path / "config.yaml").write_text("system:\n  distribute: False\n")
    (tmp_path / "train.py").write_text("")
    given = {"device_target": "CPU", "script_devices": "[0,1)", "alone": "1", "train_script": "train.py"}
    gone = subprocess.Popen(["true"])
    gone.wait()
    words = launching.words(script="run_cpu.sh", device_num="1", job_pid=str(gone.pid), **given)
    source, sink = os.pipe()
    os.close(source)
    with open(sink, "wb") as plan:
        command = [sys.executable, str(root / "tools/launch/main.py"), *words]
        ended = subprocess.run(command, cwd=tmp_path, stdout=plan, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (78, "")
