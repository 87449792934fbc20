import hashlib
import os
import signal
import subprocess
import sys
import time

import pytest

from hccl_tools.commands import place_table
from hccl_tools.hosts import ask

TEXT = '{"version": "1.0"}'
DIGEST = hashlib.sha256(TEXT.encode()).hexdigest()


def test_a_table_is_put_where_nothing_was_with_its_folders(tmp_path):
    path = tmp_path / "logs" / "run" / "t.json"
    assert place_table.place(str(path), TEXT.encode()) == DIGEST
    assert path.read_text() == TEXT


def test_a_file_that_is_there_stays_and_its_own_digest_is_told(tmp_path):
    path = tmp_path / "t.json"
    path.write_text("mine")
    assert place_table.place(str(path), TEXT.encode()) == hashlib.sha256(b"mine").hexdigest()
    assert path.read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        place_table.place(str(tmp_path / "file" / "t.json"), TEXT.encode())


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("root@node1: Permission denied (publickey,password).", "ssh-copy-id HOST"),
        ("Host key verification failed.", "type ssh HOST once"),
        ("ssh: connect to host node1 port 22: No route to host", ""),
    ],
)
def test_what_to_do_about_ssh_is_said(said, hint):
    (line,) = ask._faults([], ["node1"], 1, said)
    assert said in line
    assert line.endswith("(exit 1)") if not hint else hint in line


def test_ssh_neither_asks_nor_waits_unless_the_user_has_settings_of_their_own(monkeypatch):
    monkeypatch.delenv("OMPI_MCA_plm_rsh_agent", raising=False)
    monkeypatch.delenv("OMPI_MCA_plm_rsh_args", raising=False)
    assert "BatchMode=yes" in ask._environment()["OMPI_MCA_plm_rsh_args"]
    monkeypatch.setenv("OMPI_MCA_plm_rsh_agent", "rsh")
    assert "OMPI_MCA_plm_rsh_args" not in ask._environment()


def test_an_interrupt_ends_mpirun_by_sigterm_which_it_hands_on(world, tmp_path, root):
    program = tmp_path / "programs" / "mpirun"
    program.write_text(
        "#!/usr/bin/env bash\ntrap 'printf ended >ended; exit 1' TERM\nprintf up >up\nsleep 30 >/dev/null 2>&1 & wait\n"
    )
    program.chmod(0o755)
    (world / "hosts").write_text("10.0.0.1 slots=8\n")
    words = [sys.executable, str(root / "hccl_tools" / "hccl_tools.py"), "--hostfile", "hosts"]
    (tmp_path / "programs" / "env").symlink_to("/usr/bin/env")
    process = subprocess.Popen(words, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    deadline = time.monotonic() + 20
    while not os.path.exists("up"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert (world / "ended").read_text() == "ended"
