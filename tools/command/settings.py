"""The options that the launcher itself uses while the job runs; tools.launch.request has the others."""

from __future__ import annotations

from hccl_tools.common.quoting import quote
from hccl_tools.common.record import Record
from tools.attempts.count import limit_of
from tools.command.line import is_number
from tools.launch.request import MAX_RANKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from tools.command.line import Line

STALL = "600"  # seconds
RESTART_WAIT = "120"


class Settings(Record):
    """How the job is watched, stopped and reported."""

    grace: int  # seconds between SIGTERM and SIGKILL
    grace_given: bool
    stop_before: int  # seconds before a time limit; 0: no such request
    timeout: int  # seconds; 0: no limit
    hang_timeout: int  # the same
    max_restarts: int  # restarts in a row that bring the job no further
    restart_limit: int  # restarts in all
    restart_wait: int  # seconds in which what an attempt has left must have ended; 0: this is not checked
    keep_going: bool
    quiet: bool
    watch_plogs: bool
    watch: bool
    report: bool
    dry_run: bool
    straggler: str | None  # as typed: the plan checks it
    metrics: str | None
    stall_timeout: int  # seconds
    console: str  # ranks with commas between them, all, table or none
    console_given: bool
    leftovers: str  # wait or end

    @classmethod
    def of(cls, line: Line) -> Settings:
        """The settings in a command line.  Raises Refusal."""
        grace = line.number("grace", line.declaration.grace)
        timeout, hang_timeout, max_restarts = map(line.number, ("timeout", "hang_timeout", "max_restarts"))
        if line.given("keep_going") and max_restarts:
            raise line.misused(
                "--keep_going lets ranks go on when one fails, --max_restarts starts all of them again; give one of"
                " them"
            )
        for option in ("restart_args", "restart_limit", "restart_wait"):
            if line.given(option) and not line.given("max_restarts"):
                raise line.misused("--{option} is for restarts; add --max_restarts N", option=option)
        if line.given("stall_timeout"):
            _check_stall_timeout(line)
        stop_before = line.number("stop_before")
        if stop_before and timeout and stop_before >= timeout:
            raise line.misused(
                "--stop_before {seconds} is not shorter than --timeout {limit}: the job would end at once",
                seconds=stop_before,
                limit=timeout,
            )
        line.choice("keep_plogs", "failed")
        return cls(
            grace=grace,
            grace_given=line.given("grace"),
            stop_before=stop_before,
            timeout=timeout,
            hang_timeout=hang_timeout,
            max_restarts=max_restarts,
            restart_limit=_restart_limit(line, max_restarts),
            restart_wait=line.number("restart_wait", RESTART_WAIT),
            straggler=line.value("straggler") or None,
            metrics=line.value("metrics") or None,
            stall_timeout=line.number("stall_timeout", STALL),
            console=_console(line),
            console_given=line.given("console"),
            watch=not line.given("no_watch"),
            leftovers=line.choice("leftovers", "wait"),
            **{name: line.given(name) for name in ("keep_going", "quiet", "watch_plogs", "report", "dry_run")},
        )


def _check_stall_timeout(line: Line) -> None:
    from tools.launch import monitored  # few launches need it

    if monitored.address(line.value("metrics")) is None:
        raise line.misused("--stall_timeout is for /healthz; add --metrics :PORT")
    if not line.number("stall_timeout"):
        raise line.misused("--stall_timeout 0: write how long the ranks may write nothing, such as 10m")


def _restart_limit(line: Line, max_restarts: int) -> int:
    """--restart_limit; without it there is one, too: see count.py.  Raises Refusal."""
    if not line.given("restart_limit"):
        return limit_of(max_restarts, None)
    limit = line.number("restart_limit")
    if limit < max_restarts:
        raise line.misused(
            "--restart_limit {limit} is for all restarts, so it cannot be less than --max_restarts {number}",
            limit=limit,
            number=max_restarts,
        )
    return limit


def _console(line: Line) -> str:
    """--console: its ranks with commas between them, or one of its words."""
    value = line.value("console", "none" if line.given("quiet") else "0")
    if not value[:1].isdigit():
        return value if value in ("all", "table", "none") else _no_ranks(line, value)
    found: dict[str, None] = {}
    for part in value.split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not (is_number(first) and is_number(last)) or int(last) < int(first):
            return _no_ranks(line, value)
        if int(last) >= MAX_RANKS:
            raise line.misused("--console {value}: a job has at most {most} ranks", value=value, most=MAX_RANKS)
        found.update(dict.fromkeys(map(str, range(int(first), int(last) + 1))))
    return ",".join(found)


def _no_ranks(line: Line, value: str) -> NoReturn:
    raise line.misused(
        "--console {value}: write ranks such as 3, 0,3 or 0-3, or all, table or none", value=quote(value)
    )
