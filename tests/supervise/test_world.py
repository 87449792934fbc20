"""The supervisor's real world: children, process groups, what the kernel says of them."""

import os
import signal
import subprocess
import time

import pytest
from small_launcher import gone, is_child, state, told, until

from tools.supervise import proc
from tools.supervise.children import exit_code

# ---- children --------------------------------------------------------------------------------------------------------


def test_none_of_64_ends_that_come_at_once_while_it_is_stopped_is_lost(launcher):
    one = launcher("""
pids = [start(str(n), "sleep", "60") for n in range(64)]
tell(pids)
tell([row for event in hear(64) if type(event) is Ended for row in event.rows])
""")
    (pids,) = told(one)
    one.send_signal(signal.SIGSTOP)
    until(lambda: state(one.pid) == "T")
    for number, pid in enumerate(pids):
        os.kill(pid, (signal.SIGKILL, signal.SIGTERM)[number % 2])
    gone(*pids)
    one.send_signal(signal.SIGCONT)
    (rows,) = told(one)
    assert sorted(rows, key=lambda row: int(row[0])) == [[str(n), (137, 143)[n % 2]] for n in range(64)]


def test_ends_and_signals_are_events_and_a_signal_comes_before_the_ends_that_it_explains(launcher):
    one = launcher("""
start("a", "sh", "-c", "exit 3")
pid = start("b", "sleep", "60")
tell(pid, os.getpid())
found = hear(2)
tell([[type(event).__name__, *event] for event in found])
""")
    pid, own = told(one)
    one.send_signal(signal.SIGSTOP)
    until(lambda: state(own) == "T")
    os.kill(pid, signal.SIGTERM)
    gone(pid)
    one.send_signal(signal.SIGUSR1)
    one.send_signal(signal.SIGTERM)
    one.send_signal(signal.SIGCONT)
    (found,) = told(one)
    kinds = [event[0] for event in found if event[0] == "Signalled" or ["b", 143] in event[1]]
    assert kinds == ["Signalled", "Signalled", "Ended"]
    assert {event[1] for event in found if event[0] == "Signalled"} == {signal.SIGUSR1, signal.SIGTERM}


def test_a_member_that_another_process_has_started_may_end_before_we_know_it(launcher):
    one = launcher("""
assert not world.children.adopt()
world.children.early = {}
out, told = os.pipe()
between = os.fork()
if not between:
    if not os.fork():
        os.setpgid(0, 0)
        os.write(told, b"%d" % os.getpid())
        os._exit(7)
    os._exit(0)
pid = int(os.read(out, 16))
while len(world.children.early) < 2:
    world.events(60)
world.children.began(pid, "0")
tell([row for event in hear(1) for row in event.rows], pid in world.children.members)
""")
    assert told(one) == [[["0", 7]], False]


def test_a_signal_that_the_caller_ignores_stays_ignored(launcher):
    one = launcher("tell(0)\ntell([event.number for event in world.events(60)])", ignores="HUP")
    told(one)
    one.send_signal(signal.SIGHUP)
    one.send_signal(signal.SIGTERM)
    assert told(one) == [[signal.SIGTERM]]


def test_a_member_has_a_group_of_its_own_usual_signals_and_no_descriptor_of_ours(launcher):
    one = launcher("""
os.set_inheritable(null, False)
mine = os.pipe()
out, end = os.pipe()
words = "grep -E '^Sig(Ign|Blk)' /proc/self/status; ls /proc/self/fd; ps -o pgid= -p $$"
pid = world.start("a", ["sh", "-c", words], os.environb, end)
os.close(end)
hear(1)
tell(pid, os.read(out, 65536).decode().split())
""")
    pid, words = told(one)
    blocked, ignored, *rest = words[1:4:2] + words[4:]
    *descriptors, group = rest
    assert (int(group), descriptors[:3]) == (pid, ["0", "1", "2"])
    assert len(descriptors) <= 4  # ls has the folder open
    assert int(blocked, 16) == 0
    own = 1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1 | 1 << signal.SIGCHLD - 1
    assert int(ignored, 16) & own == 0


def test_what_cannot_be_run_is_an_error_and_a_script_without_a_first_line_is_run_by_sh(launcher, tmp_path):
    script = tmp_path / "script"
    script.write_text("exit $1\n")
    script.chmod(0o755)
    (tmp_path / "text").write_text("no program\n")
    one = launcher(f"""
errors = []
for word in ({str(tmp_path / "none")!r}, {str(tmp_path / "text")!r}):
    try:
        start("x", word)
    except OSError as error:
        errors.append(error.errno)
start("a", {str(script)!r}, "7")
tell(errors, hear(1)[-1].rows)
""")
    assert told(one) == [[2, 13], [["a", 7]]]


def test_a_child_that_is_no_member_is_waited_for_and_judged_by_nobody(launcher):
    one = launcher(
        """
pid = world.fork(lambda: os.kill(os.getpid(), signal.SIGKILL))
slow = world.fork(lambda: signal.pause())
tell(world.await_end(pid, 60), world.status(pid), world.lives(slow), world.await_end(slow, 0.1))
world.kill(slow, signal.SIGTERM)
tell(world.await_end(slow, 60), world.status(slow), world.events(0), os.getpgid(0) == os.getpid())
bad = world.fork(lambda: None.none)
tell(world.await_end(bad, 60), world.status(bad))
both = [world.fork(lambda: signal.pause()) for _ in "ab"]
world.kill(both[0])
tell(world.await_end(both[0], 60), world.await_end(None, 0.1))
world.kill(both[1])
tell(world.await_end(None, 60), world.lives(None))
""",
        stderr=subprocess.DEVNULL,
    )
    assert told(one) == [True, 137, True, False]
    assert told(one) == [True, 143, [], True]
    assert told(one) == [True, 1]
    assert told(one) == [True, False]
    assert told(one) == [True, False]


def test_a_signal_while_a_child_is_waited_for_comes_afterwards(launcher):
    one = launcher("""
pid = world.fork(lambda: sys.stdin.readline())
tell("ready")
tell(world.await_shown(pid), [event.number for event in world.events(0)])
""")
    told(one)
    one.send_signal(signal.SIGUSR1)  # it stops no job
    one.send_signal(signal.SIGINT)
    shown, numbers = told(one)
    assert (shown, set(numbers)) == (False, {signal.SIGUSR1, signal.SIGINT})


def test_what_can_be_read_goes_to_who_watches_it_and_ends_come_with_all_that_was_written_before(launcher):
    one = launcher("""
out, end = os.pipe()
got = []
world.watch(out, lambda block: got.append(len(block)) or ())
world.start("a", ["sh", "-c", "yes | head -c 50000"], os.environb, end)
os.close(end)
hear(1)
tell(sum(got), got[-1], out in world.owned)
""")
    size, last, owned = told(one)
    assert size == 50000
    assert (last == 0) == (not owned)  # at its end it is closed


@pytest.mark.parametrize("status, code", [(0, 0), (3 << 8, 3), (9, 137), (15 | 0x80, 143)])
def test_exit_codes_are_those_of_a_shell(status, code):
    assert exit_code(status) == code


# ---- what the kernel says --------------------------------------------------------------------------------------------


def test_a_group_lives_while_a_process_of_it_runs_and_zombies_do_not_count():
    words = ["sh", "-c", "sleep 60 & echo $!"]
    with subprocess.Popen(words, start_new_session=True, stdout=subprocess.PIPE, text=True) as leader:
        child = int(leader.stdout.readline())
        until(lambda: state(leader.pid) == "Z")
        assert proc.living_groups({leader.pid, child}) == {leader.pid}
        os.kill(child, signal.SIGSTOP)
        until(lambda: state(child) == "T")
        assert proc.living_groups({leader.pid}) == {leader.pid}
        proc.signal_group(leader.pid, signal.SIGTERM)  # wakes it, too
        gone(child)
        assert proc.living_groups({leader.pid}) == set()
    assert proc.living_groups({leader.pid}) == set()
    proc.signal_group(leader.pid, signal.SIGTERM)  # nobody is there, and nothing is raised
    assert not proc.send(leader.pid, signal.SIGTERM)


def test_a_programs_name_may_hold_anything(tmp_path):
    program = tmp_path / "a) S 1 (b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"]) as one:
        until(lambda: open_name(one.pid) == program.name)
        assert state(one.pid) in ("S", "R") and is_child(one.pid, os.getpid())
        one.kill()


def open_name(pid):
    with open(f"/proc/{pid}/comm") as file:
        return file.read().rstrip("\n")


def test_the_state_of_a_process_that_has_none_is_nothing(tmp_path):
    for number, text in enumerate([b"", b"7 (a) b", b"7 (a) b) T 1 7"], 5):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "stat").write_bytes(text)
    found = [proc.state(number, str(tmp_path)) for number in range(4, 8)]
    assert found == ["", "", "b", "T"] and found[-1] in proc.HELD


def test_a_sweep_kills_what_has_the_mark_wherever_it_is_and_no_other():
    mark = f"job-{os.getpid()}"

    def start(*pairs):
        return subprocess.Popen(["sleep", "60"], env=dict(pairs), start_new_session=True)

    ours = [start(("LAUNCH_JOB", mark), ("RANK_ID", rank)) for rank in ("0", "1", "10")]
    others = [start(("LAUNCH_JOB", mark + "0")), start(("X", f"LAUNCH_JOB={mark}")), start(("NOT_LAUNCH_JOB", mark))]
    try:
        job = mark.encode()
        until(lambda: set(proc.marked(job)) == {one.pid for one in ours})
        assert proc.marked(job, b"1") == [ours[1].pid]
        waits = []
        proc.sweep(job, waits.append, b"1")
        assert ours[1].wait() == -signal.SIGKILL
        assert ours[0].poll() is None and ours[2].poll() is None
        proc.sweep(job, time.sleep)
        assert [one.wait() for one in ours] == [-signal.SIGKILL] * 3
        assert all(one.poll() is None for one in others)
    finally:
        for one in [*ours, *others]:
            one.kill()
            one.wait()


def test_a_sweep_gives_up_on_what_no_signal_ends(monkeypatch):
    monkeypatch.setattr(proc, "marked", lambda job, rank=b"": [4_000_000, os.getpid()])
    waits = []
    proc.sweep(b"x", waits.append)
    assert 0.5 <= sum(waits) <= 5


@pytest.mark.parametrize("title", ["mindspore-launch-guardian", "x" * 100_000])
def test_a_child_has_a_command_line_of_its_own(launcher, title):
    one = launcher(f"""
def child():
    proc.retitle({title!r}.encode())
    tell(open("/proc/self/cmdline").read().strip("\\0"))
    tell(os.environ["PATH"] == {os.environ["PATH"]!r})
before = open("/proc/self/cmdline").read()
world.await_end(world.fork(child), 60)
tell(open("/proc/self/cmdline").read() == before)
""")
    (shown,) = told(one)
    assert title.startswith(shown) and shown[:1] == title[:1]
    assert told(one) == [True] and told(one) == [True]
