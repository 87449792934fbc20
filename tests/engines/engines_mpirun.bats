#!/usr/bin/env bats
# Ranks that Open MPI starts: the environment, the logs, the report and the end are those of local ranks.

# bats file_tags=thorough
load ../helper

setup() {
  need mpirun
  setup_world
  HCCN=()
}

# run_mpirun ARGUMENT...: three ranks, short grace.
run_mpirun() {
  launch run_mpirun.sh -n 3 --grace 2 "$@" config.yaml
}

@test "each rank has the environment of the contract, its log and its line in the report" {
  STUB_DO='1: print 3' ends 0 '*' run_mpirun
  engine_contract 2
  [[ "$(launch_json 'r["outcome"]["members"]["2"]["status"], r["outcome"]["exit"]')" = '(0, 0)' ]]
}

@test "a rank runs where the command was typed, with nothing to read, and the user's variables" {
  MY_OWN=$'a;b "c"\nd' run_mpirun
  [[ "$(recorded rank_1 'r["cwd"]')" = "$WORLD" ]]
  [[ "$(recorded rank_1 'r["env"]["MY_OWN"]')" = $'a;b "c"\nd' ]]
}

@test "the first failure ends the others, with its code, its log and no second blame" {
  export STUB_DO='0: wait; 1: await 0 2, exit 7; 2: wait'
  ends 7 '*rank 1 (device 1) exited with code 7 after *; stopping the other 2 ranks*143 SIGTERM, stopped by us*7, failed first*    rank 1 gives up*' \
    run_mpirun
  [[ "$(launch_json 'r["outcome"]["first_failure"]')" = 1 ]]
  nobody_left
}

@test "a rank has the whole grace time, whatever mpirun's own is, and not more" {
  STUB_DO='0: wait; 1: await 0 2, kill SEGV; 2: ignore TERM' ends 139 '*137 SIGKILL, stopped by us   [2-9].*' run_mpirun
  nobody_left
}

@test "a device that is left out: the ranks of its host run on the others" {
  ends 0 '*--exclude 1: the ranks run on devices 0,2*' launch run_mpirun.sh -H localhost:3 --exclude 1 config.yaml
  [[ "$(places DEVICE_ID RANK_SIZE)" = $'0 2\n2 2' ]]
}

# ends_all WHAT: rank 0 does it, and ends when rank 1 fails
ends_all() {
  STUB_DO="0: $1; 1: await 0, exit 7" ends 7 '*' launch run_mpirun.sh -n 2 --grace 2 config.yaml
  nobody_left
}

@test "a rank keeps its device also when MindSpore, on import, takes Open MPI's number for it" {
  STUB_DO='' ends 0 '*' launch run_mpirun.sh -n 2 --devices 4,5 config.yaml
  [[ "$(recorded rank_1 '[r["env"][n] for n in ("DEVICE_ID", "OMPI_COMM_WORLD_LOCAL_RANK", "LOCAL_RANK")]')" = "['5', '5', '1']" ]]
}

@test "children of a rank, and those that called setsid, end with the job" { ends_all children; }
@test "a rank that stopped itself is ended, too" { ends_all stop; }

for_signal() {
  launch_ranks '0: wait; 1: children' run_mpirun.sh -n 2 config.yaml
  end_by "$1"
  [[ $status -eq $((128 + $(kill -l "$1"))) ]] || fail "$status: $stderr"
  [[ $stderr == *"SIG$1: stopping all ranks"*"143 SIGTERM, stopped by us"* ]] || fail "$stderr"
  nobody_left
}

@test "SIGTERM to the launcher ends all" { for_signal TERM; }
@test "SIGINT to the launcher ends all" { for_signal INT; }
@test "SIGHUP to the launcher ends all" { for_signal HUP; }
@test "SIGQUIT to the launcher ends all" { for_signal QUIT; }

@test "SIGUSR1 reaches the ranks, and only them" {
  launch_ranks '0: usr1; 1: usr1' run_mpirun.sh -n 2 config.yaml
  end_by USR1 0
  grep -qx 'got SIGUSR1' logs/latest/rank_1.log
}

@test "SIGKILL of the launcher leaves nothing" {
  launch_ranks '0: wait; 1: children' run_mpirun.sh -n 2 --grace 1 config.yaml
  kill -KILL "$LAUNCHER"
  eventually nobody_left
}

# signalled_above SIGNAL RANK N: two ranks run, and the Nth parent of RANK gets it: 1 its agent, 2 mpirun.
signalled_above() {
  launch_ranks '0: wait; 1: children' run_mpirun.sh -n 2 --grace 1 config.yaml
  kill -s "$1" "$(above "$(recorded "rank_$2" 'r["pid"]')" "$3")"
  ended
  nobody_left
}

@test "SIGKILL of mpirun ends the job, leaves nothing, and is said" {
  signalled_above KILL 0 2
  [[ $status -eq 137 ]] || fail "$status: $stderr"
  [[ $stderr == *"mpirun was ended by SIGKILL"*"end not reported"* ]] || fail "$stderr"
}

@test "SIGKILL of an agent ends its rank and the job" {
  signalled_above KILL 1 1
  [[ $status -ne 0 ]]
}

# ends_through_mpirun SIGNAL RANK N: mpirun ends the ranks, not the launcher. Its exit code depends on its version.
ends_through_mpirun() {
  signalled_above "$@"
  [[ $status == @(1|143) && $stderr == *": mpirun "@(exited\ with\ code\ 1|was\ ended\ by\ SIGTERM)" after "* ]] || fail "$status: $stderr"
}

@test "SIGINT to mpirun ends all" { ends_through_mpirun INT 0 2; }
@test "SIGTERM to mpirun ends all" { ends_through_mpirun TERM 0 2; }
@test "SIGTERM to one agent ends all, not only its rank" { ends_through_mpirun TERM 1 1; }
@test "SIGINT to one agent ends all, not only its rank" { ends_through_mpirun INT 1 1; }

@test "a program id that fails changes nothing" {
  mkdir bin
  printf '%s\n' '#!/bin/sh' 'exit 1' >bin/id
  chmod +x bin/id
  PATH=$WORLD/bin:$PATH ends 0 '*' run_mpirun
  run ! grep 'line [0-9]*: ' logs/latest/mpirun.log
}

@test "an order to stop that comes before a rank's agent can take it is given again" {
  # shellcheck disable=SC2016 # for the interpreter: PATH's python is that of rank 2's agent, and heeds URG late
  printf '%s\n' '#!/bin/sh' '[ "${OMPI_COMM_WORLD_RANK-}" != 2 ] || trap ": >\"$STUB_OUT/ordered\"" URG' \
    'until [ "${OMPI_COMM_WORLD_RANK-}" != 2 ] || [ -e "$STUB_OUT/go" ]; do sleep 0.02; done' \
    "exec \"$PYTHON\" \"\$@\"" >late
  chmod +x late
  mkdir -p project/scripts
  ln -s "$PROJECT"/{configs,hccl_tools,schemas} project/
  cp -r "$PROJECT/tools" project/
  cp -r "$SCRIPTS" project/
  sed -i "s|\[sys.executable, \"-I\", \"-S\", program\]|[\"$WORLD/late\", \"-I\", \"-S\", program]|" project/tools/engines/agents.py
  grep -q "$WORLD/late" project/tools/engines/agents.py
  SCRIPTS=$WORLD/project/scripts
  export STUB_DO='0: wait; 1: await 0, exit 7; 2: wait'
  launch_behind run_mpirun.sh -n 3 config.yaml
  eventually test -e "$STUB_OUT/ordered"
  touch "$STUB_OUT/go"
  ended 7 $'*\n2 * 143 SIGTERM, stopped by us *'
}

@test "the user's own settings for what mpirun writes do not come between the ranks and the launcher" {
  export STUB_DO='1: exit 3; 0: wait; 2: wait' OMPI_MCA_orte_tag_output=1 OMPI_MCA_orte_timestamp_output=1
  run --separate-stderr run_mpirun
  [[ $status -eq 3 && $stderr == *$'\n1 '*' 3, failed first '* && $stderr != *'not started'* ]] || fail "$status: $stderr"
}

@test "MindSpore's scheduler that fails ends the job" {
  export STUB_DO='0: wait; 1: wait; 2: wait'
  STUB_SCHEDULER_EXIT=3 ends 3 "*MindSpore's scheduler exited with code 3*" run_mpirun
}

@test "--output_filename links the logs in Open MPI's layout, in the same folder again and again" {
  STUB_DO='1: print 2' ends 0 '*' run_mpirun --output_filename log_output
  grep -qx 'line 1' log_output/1/rank.1/stdout
  STUB_DO='1: print 5' ends 0 '*' launch run_mpirun.sh -n 2 -output-filename log_output config.yaml
  grep -qx 'line 4' log_output/1/rank.1/stdout
  [[ "$(ls log_output/1)" = $'rank.0\nrank.1' && "$(ls logs/*/rank_2.log)" ]] || fail "a link of the job with three ranks is left: $(ls log_output/1)"
  [[ $stderr != *log_output* ]] || fail "$stderr"
}

@test "--output_filename: what is not a link of a launch stays as it is, and the ranks run" {
  mkdir -p log_output/1/rank.0 log_output/1/rank.1 mine
  echo mine | tee mine/rank_1.log >log_output/1/rank.0/stdout
  ln -s "$PWD/mine/rank_1.log" log_output/1/rank.1/stdout
  ends 0 '*log_output/1/rank.0/stdout, log_output/1/rank.1/stdout: not made by this launcher, and not changed; the logs of these ranks are only in logs/run_mpirun-*' \
    run_mpirun --output_filename log_output
  [[ "$(cat log_output/1/rank.?/stdout mine/*)" = $'mine\nmine\nmine' ]]
  [[ -L log_output/1/rank.2/stdout ]]
  grep -q 'rank.0/stdout is not a link to this log' logs/latest/rank_0.log
  echo mine >file
  ends 78 '*--output_filename *file: *file is not a folder; name another one*' run_mpirun --output_filename file
  [[ "$(cat file)" = mine ]]
}

@test "--no_sink: the two variables that it stands for, and what takes effect" {
  ends 0 '*your program needs set_context(jit_config={"jit_level": "O0"})*' run_mpirun --no_sink
  [[ "$(recorded rank_0 'r["env"]["GRAPH_OP_RUN"], r["env"]["HCCL_WHITELIST_DISABLE"]')" = "('1', '1')" ]]
}

@test "--no_sink gives our own trainer jit_level O0" {
  bash "$SCRIPTS/run_mpirun.sh" -n 2 --no_sink --dry_run --device_target CPU "$PROJECT/configs/mnist/lenet5_digits.yaml" >plan.sh 2>said
  grep -q -- ' -o system.jit_level=O0' plan.sh || fail "$(<plan.sh)"
  grep -q 'note: --no_sink means system.jit_level=O0' said || fail "$(<said)"
}

@test "--dry_run prints mpirun's line, which can be pasted and starts the same ranks" {
  run_mpirun --dry_run >plan.sh
  [[ ! -e logs ]]
  grep -q -- '^mpirun .*--map-by slot --bind-to none -wdir' plan.sh
  bash plan.sh
  ranks_up 0 1 2
  [[ "$(places RANK_ID DEVICE_ID RANK_SIZE RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE SERVER_ID DEVICE_NUM)" = $'0 0 3 0 0 3 3 0 3\n1 1 3 1 1 3 3 0 3\n2 2 3 2 2 3 3 0 3' ]] || fail "$(<plan.sh)"
}

@test "--allow-run-as-root is for root only" {
  run_mpirun --dry_run >plan.sh
  [[ $EUID -eq 0 ]] || ! grep -q allow-run-as-root plan.sh
  [[ $EUID -ne 0 ]] || grep -q -- '^mpirun --allow-run-as-root ' plan.sh
}

# An mpirun of another version, or another MPI, first on PATH.
fake_mpirun() {
  mkdir -p bin
  printf '#!/bin/sh\necho "%s"\n' "$1" >bin/mpirun
  chmod +x bin/mpirun
  PATH=$WORLD/bin:$PATH
}

@test "Open MPI 5 gets its own spelling" {
  fake_mpirun 'mpirun (Open MPI) 5.0.3'
  run_mpirun --dry_run >plan.sh
  grep -q -- '--prtemca state_base_error_non_zero_exit 1 --prtemca oob_tcp_keepalive_time 5' plan.sh
  [[ "$(cat plan.sh)" != *orte_* ]]
  OMPI_MCA_oob_tcp_keepalive_time=9 PRTE_MCA_oob_tcp_keepalive_probes=9 run_mpirun --dry_run >plan.sh
  grep -q -- ' --prtemca oob_tcp_keepalive_time 5 --prtemca oob_tcp_keepalive_intvl 2 -x' plan.sh # 5 does not read OMPI_MCA_
}

@test "another MPI's mpirun, an old one, or none is refused in words" {
  (fake_mpirun 'HYDRA build details:' && run --separate-stderr run_mpirun \
    && refused 78 "run_mpirun.sh: the mpirun on PATH is not Open MPI's; it prints: HYDRA build details:; put*")
  (fake_mpirun 'mpirun (Open MPI) 3.1.6' && run --separate-stderr run_mpirun \
    && refused 78 "run_mpirun.sh: mpirun is Open MPI 3.1.6; put Open MPI 4 or 5 first*")
  rm -rf bin && mkdir bin
  for program in bash env readlink dirname; do ln -s "$(command -v "$program")" bin/; done
  refused 78 "run_mpirun.sh: mpirun is not on PATH; install Open MPI*" \
    env PATH="$WORLD/bin" "$(command -v bash)" "$SCRIPTS/run_mpirun.sh" --device_target CPU config.yaml
}

@test "wrong values are named" {
  while IFS='|' read -r arguments message; do
    # shellcheck disable=SC2086 # several arguments
    refused_later 2 "run_mpirun.sh: $message" launch run_mpirun.sh $arguments config.yaml
  done <<'LIST'
-n 0|-n 0 is not a number from 1 to 65536
-n x|-n x is not a number from 1 to 65536
-n -1|-n -1 is not a number from 1 to 65536
-n 3 --devices 0,1|--devices "0,1" names 2, but a host has 3 ranks; name as many
--device_target TPU|--device_target TPU: run_mpirun.sh takes Ascend, GPU and CPU
--rank_table x.json|unknown option --rank_table: run_mpirun.sh needs no rank table, because its ranks find each other without one; for a launch with a rank table: bash */scripts/ascend8p.sh and similar scripts, on several hosts bash */scripts/run_cluster.sh; see: *
LIST
  all_refused
}

@test "without NPUs, and without GPUs, that is said" {
  refused 78 "run_mpirun.sh: no Ascend NPU on this machine*" \
    bash "$SCRIPTS/run_mpirun.sh" -n 2 --train_script "$FIXTURES/stub_trainer.py" config.yaml
  command -v nvidia-smi && skip "there may be a GPU here"
  refused 78 "run_gpu.sh: no GPU on this machine: nvidia-smi is not on PATH; to try the launch without GPUs: bash $SCRIPTS/run_gpu.sh --device_target CPU -n 2 *" \
    bash "$SCRIPTS/run_gpu.sh" -n 2 --train_script "$FIXTURES/stub_trainer.py" --config config.yaml .
}

@test "run_gpu.sh: DATA_PATH reaches the ranks as an absolute path; one that is not there is refused" {
  mkdir data
  refused 78 "run_gpu.sh: DATA_PATH nowhere: no such folder; name the folder that holds the data set" \
    launch run_gpu.sh -n 2 --config config.yaml nowhere
  launch run_gpu.sh -n 2 --config config.yaml data
  [[ "$(recorded rank_1 'r["env"]["DATA_PATH"]')" = "$WORLD/data" ]]
}

@test "run_gpu.sh on a machine whose (simulated) nvidia-smi names GPUs: planned for GPUs, with no scheduler" {
  mkdir bin
  printf '#!/bin/sh\necho "GPU 0: A"\necho "GPU 1: B"\n' >bin/nvidia-smi
  chmod +x bin/nvidia-smi
  PATH=$WORLD/bin:$PATH bash "$SCRIPTS/run_gpu.sh" -n 2 --train_script "$FIXTURES/stub_trainer.py" --config config.yaml .
  [[ "$(launch_json 'r["device_target"], r["scheduler"], "MS_ROLE" in r["exports"]')" = "('GPU', [], False)" ]]
  PATH=$WORLD/bin:$PATH ends 78 'run_gpu.sh: GPU 2 is not on this machine, which has GPUs 0,1; start fewer ranks with -n' \
    bash "$SCRIPTS/run_gpu.sh" -n 3 \
    --train_script "$FIXTURES/stub_trainer.py" --config config.yaml .
  PATH=$WORLD/bin:$PATH ends 78 'launch.sh: GPU 3 is not on this machine, which has GPUs 0,1; choose from those with --devices' \
    bash "$SCRIPTS/launch.sh" --device_target GPU --devices 3 "$FIXTURES/stub_trainer.py"
}

@test "run_gpu.sh with a MindSpore that takes no GPUs: refused before any rank starts" {
  mkdir bin mindspore
  printf '#!/bin/sh\necho "GPU 0: A"\necho "GPU 1: B"\n' >bin/nvidia-smi
  chmod +x bin/nvidia-smi
  printf 'def set_context(device_target):\n    raise RuntimeError("Unsupported device target GPU.")\n' >mindspore/__init__.py
  config=$PROJECT/configs/mnist/lenet5_digits.yaml
  export PYTHONPATH=$WORLD PATH=$WORLD/bin:$PATH
  refused 78 'run_gpu.sh: MindSpore cannot use GPUs: this MindSpore has no GPU back end; install one that has; to try the launch without GPUs: *' \
    bash "$SCRIPTS/run_gpu.sh" -n 2 --config "$config" .
  bash "$SCRIPTS/run_gpu.sh" -n 2 --no_check --dry_run --config "$config" . >plan
  printf 'import mindspore\n' >net.py
  refused 78 'run_gpu.sh: MindSpore cannot use GPUs: *' bash "$SCRIPTS/run_gpu.sh" -n 2 net.py
}

@test "an nvidia-smi or npu-smi that fails is quoted" {
  mkdir bin
  printf '#!/bin/sh\necho "NVIDIA-SMI has failed" >&2\nexit 9\n' | tee bin/nvidia-smi >bin/npu-smi
  chmod +x bin/*
  PATH=$WORLD/bin:$PATH refused 78 'run_gpu.sh: nvidia-smi does not work; it printed: NVIDIA-SMI has failed (exit 9); to try *' \
    bash "$SCRIPTS/run_gpu.sh" -n 2 --train_script "$FIXTURES/stub_trainer.py" --config config.yaml .
  PATH=$WORLD/bin:$PATH refused 78 'run_mpirun.sh: no Ascend NPU on this machine: * and asked npu-smi, which printed: NVIDIA-SMI has failed (exit 9); *' \
    bash "$SCRIPTS/run_mpirun.sh" -n 2 --train_script "$FIXTURES/stub_trainer.py" config.yaml
}

@test "--max_restarts starts all ranks again, with logs of their own" {
  STUB_DO='0: wait; 1: await 0, exit 7' ends 7 '*restart 1 of 1*' launch run_mpirun.sh -n 2 --max_restarts 1 \
    --restart_args "-o 'a b'" config.yaml
  grep -q 'rank 1 gives up' logs/latest/rank_1.log
  grep -q 'rank 1 gives up' logs/latest/restart_1/rank_1.log
  [[ "$(recorded rank_1 'r["argv"]')" = "['--config', 'config.yaml', '-o', 'a b']" ]]
  nobody_left
}

@test "--hang_timeout: the ranks' agents save their stacks and the launcher says where each rank is" {
  STUB_DO='0: wait; 1: wait; 2: await 0 1, exit 0' ends 124 '*' run_mpirun --hang_timeout 3
  [[ $stderr == *"run_mpirun.sh: ranks 0,1: in wait ($FIXTURES/stub_trainer.py:"*")"$'\n'* ]] || fail "$stderr"
  grep -q stub_trainer.py logs/latest/rank_1.stack
  [[ "$(launch_json 'r["outcome"]["stopped_by"], r["outcome"]["first_failure"]')" = "('hang', None)" ]]
  nobody_left
}

@test "a process of somebody else on a GPU of the launch is said, and the ranks start" {
  mkdir bin
  cat >bin/nvidia-smi <<'END'
#!/bin/sh
case "$*" in
  *compute-apps*) echo "GPU-b, 4711, 864" ;;
  *query-gpu*) printf '0, GPU-a\n1, GPU-b\n2, GPU-c\n' ;;
  *) printf 'GPU 0: A\nGPU 1: B\nGPU 2: C\n' ;;
esac
END
  chmod +x bin/nvidia-smi
  PATH=$WORLD/bin:$PATH ends 0 '*note: another process uses GPU 1 (pid 4711, 864 MiB) and will slow this job; see: nvidia-smi*' \
    bash "$SCRIPTS/launch.sh" --device_target GPU -n 2 "$FIXTURES/stub_trainer.py"
  [[ "$stderr" != *"uses GPU 0"* ]]
  PATH=$WORLD/bin:$PATH ends 0 '*exit 0*' bash "$SCRIPTS/launch.sh" --device_target GPU --devices 0,2 "$FIXTURES/stub_trainer.py"
  [[ "$stderr" != *"another process"* ]]
}
