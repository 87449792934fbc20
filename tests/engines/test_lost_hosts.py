"""The host that an engine has lost, from the lines in the engine's own log."""

import pytest

from tools.engines.mpirun import Mpirun
from tools.engines.relayed import lines_of
from tools.engines.srun import Srun

DAEMON = """\
ORTE has lost communication with a remote daemon.
  HNP daemon   : [[1,0],0] on node n0
  Remote daemon: [[1,0],2] on node n2"""
NOT_STARTED = "An ORTE daemon has unexpectedly failed\n  Local host:  n0\n  Remote host: n3\n  Daemon exit status: %d"
CUT_OFF = "Timeout, server n4 not responding."
CLOSED = "Connection to n5 closed by remote host."
NODE = "srun: error: Node failure on n6"
LAUNCH = "srun: error: Task launch for StepId=7.0 failed on node n7: Communication connection failure"


@pytest.mark.parametrize(
    ("lines", "host"),
    [
        ("", ""),
        ("a rank says: Remote host is slow\n on node n9", ""),
        (DAEMON, "n2"),
        (NOT_STARTED % 255, "n3"),
        (NOT_STARTED % 0, "n3"),
        (NOT_STARTED % 1, ""),  # it could not be started, for another reason
        (CUT_OFF, "n4"),
        (CLOSED, "n5"),
        (f"{CLOSED}\n{CUT_OFF}", "n4"),
        (f"{CUT_OFF}\n{DAEMON}", "n2"),  # mpirun itself knows it best
        (NODE, ""),
    ],
)
def test_of_mpirun(lines, host):
    assert Mpirun.lost_in(lines.split("\n")) == host


@pytest.mark.parametrize(
    ("lines", "host"),
    [
        ("", ""),
        (NODE, "n6"),
        (LAUNCH, "n7"),
        (f"{LAUNCH}\n{NODE}", "n7"),
        ("srun: error: n8: task 3: Exited with exit code 1", ""),
        (DAEMON, ""),
    ],
)
def test_of_srun(lines, host):
    assert Srun.lost_in(lines.split("\n")) == host


def test_a_log_may_be_gone_or_hold_anything(tmp_path):
    log = tmp_path / "mpirun.log"
    assert list(lines_of(str(log))) == []
    log.write_bytes(b"\xff\x00\n[n1] " + CUT_OFF.encode() + b"\n" + CUT_OFF.encode() + b"\r\nx")
    assert Mpirun.lost_in(lines_of(str(log))) == "n4"
