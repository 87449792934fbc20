"""Command lines of scripts, read as the launcher reads them: for tests of tools/command."""

import shlex

from tools.command.command import read
from tools.command.declaration import Declaration
from tools.launch.request import Request

SCRIPTS = {
    "ascend2p.sh": "local CONFIG device_target=Ascend devices=[0,2)",
    "launch.sh": "local CONFIG device_target=",
    "run.sh": "local DATA_PATH RANK_SIZE options=config device_target=Ascend default_config=configs/x.yaml",
    "run_pipeline.sh": "local DATA_PATH DEVICE_TARGET without=device_target device_target=Ascend devices=[0,8)",
    "run_pod.sh": "local CONFIG placement=pod grace=25 device_target=Ascend",
    "run_mpirun.sh": "mpirun CONFIG device_target=Ascend",
    "run_mpirun_1.sh": "mpirun HOSTS device_target=Ascend",
    "run_msrun.sh": "msrun CONFIG device_target=Ascend",
    "run_slurm.sh": "srun CONFIG device_target=Ascend",
    "msrun_launcher.sh": "msrun none quoted=quoted device_target=Ascend",
}
OPTIONS = {
    "launch.sh": "options=n zoo",
    "run_pod.sh": "options=worker_num local_worker_num master_addr master_port node_rank pod_wait",
    "run_mpirun.sh": "options=n ssh output_filename",
    "run_mpirun_1.sh": "options=config n",
    "msrun_launcher.sh": "options=worker_num local_worker_num master_addr master_port node_rank",
}


def declared(script):
    words = SCRIPTS[script].split() + [text for name, text in OPTIONS.items() if name == script]
    return Declaration.from_words([f"script=scripts/{script}", *words])


def command(script, text, *more, environ=None):
    return read(declared(script), [*shlex.split(text), *more], environ or {})


def request(script, text, *more):
    return Request.from_words(command(script, text, *more).words)
