"""Disks, the log folder and the data; the files of the program and the variables of a host."""

from __future__ import annotations

from hccl_tools.common.language import marked
from tools.doctor.limits import NO_SHM
from tools.preflight.catalog.row import GIB, MIB, Equal, Least, Row, Shared, Yes, graded
from tools.preflight.difference import BLOCKS, SURPRISES

_SAME_FILES = marked("copy the files to these hosts, or share their folder")
_SHM = marked("data loaders pass their data through it: start a container with --shm-size=8g, or remove what fills it")
_FULL = marked("remove files there, or name another folder: --log_dir")

DISKS = (
    Row(
        key="shm",
        collector="disk",
        rule=Yes(),
        level=SURPRISES,
        text=marked("no file system is mounted on /dev/shm"),
        remedy=NO_SHM,
    ),
    *graded(
        {BLOCKS: 16 * MIB, SURPRISES: GIB},
        key="shm_free",
        collector="disk",
        text=marked("{value} free in /dev/shm"),
        unit="bytes",
        remedy=_SHM,
    ),
    Row(
        key="tmp_free",
        collector="disk",
        rule=Least(16 * MIB),
        level=BLOCKS,
        text=marked("{value} free in /tmp"),
        unit="bytes",
        remedy=marked("remove what fills it"),
    ),
    Row(
        key="folder",
        collector="log_folder",
        rule=Yes(),
        level=BLOCKS,
        text=marked("the folder in which this command was typed is not there"),
        remedy=marked("ranks run in it: share it between the hosts, or make it there"),
    ),
    Row(
        key="logs_writable",
        collector="log_folder",
        rule=Yes(),
        level=BLOCKS,
        text=marked("the log folder cannot be written"),
        remedy=marked("change its permissions, or name another folder: --log_dir"),
    ),
    *graded(
        {BLOCKS: 16 * MIB, SURPRISES: GIB},
        key="logs_free",
        collector="log_folder",
        text=marked("{value} free for the log folder"),
        unit="bytes",
        remedy=_FULL,
    ),
    Row(
        key="logs_inodes",
        collector="log_folder",
        rule=Least(100),
        level=BLOCKS,
        text=marked("{value} inodes free for the log folder"),
        remedy=_FULL,
    ),
    Row(
        key="logs_place",
        collector="log_folder",
        rule=Shared(),
        level=SURPRISES,
        text=marked("the log folder is on another file system than that of most hosts"),
        remedy=marked("logs and checkpoints of these hosts will be there alone: mount the shared file system"),
    ),
)

FILES = (
    Row(
        key="file:",
        collector="files",
        rule=Equal(),
        level=BLOCKS,
        text=marked("{name} has sha256 {value}"),
        without=marked("{name} is not there"),
        remedy=_SAME_FILES,
    ),
    Row(
        key="more_files",
        collector="files",
        rule=Equal(),
        level=BLOCKS,
        text=marked("more files of the program are other ones (together {value})"),
        without=marked("these are as here"),
        remedy=_SAME_FILES,
    ),
    Row(
        key="table_file",
        collector="files",
        rule=Equal(),
        level=BLOCKS,
        lacking=SURPRISES,
        text=marked("the rank table has sha256 {value}"),
        without=marked("the rank table is not there"),
        remedy=marked("copy the table to all hosts, if you launch on each of them"),
    ),
    Row(
        key="data",
        collector="data",
        rule=Yes(),
        level=BLOCKS,
        text=marked("the data is not there, or cannot be read"),
        remedy=marked("copy it to these hosts, or mount the file system that has it"),
    ),
    Row(
        key="data_entries",
        collector="data",
        rule=Equal(),
        level=SURPRISES,
        text=marked("{value} files in the folder of the data"),
        remedy=marked("compare the folders; copy what is missing"),
    ),
    Row(
        key="data_bytes",
        collector="data",
        rule=Equal(),
        level=SURPRISES,
        text=marked("{value} bytes of data"),
        remedy=marked("compare the files; copy the right one"),
    ),
    Row(
        key="variable:",
        collector="environment",
        rule=Equal(),
        level=SURPRISES,
        text="{name}={value}",
        without=marked("{name} is not set"),
        remedy=marked("set it where you launch, for all ranks; or take it out of ~/.bashrc and /etc/profile.d there"),
    ),
)
