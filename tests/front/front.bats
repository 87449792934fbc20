#!/usr/bin/env bats
# mslaunch finds out where it runs: this machine, hosts, an allocation of Slurm, the servers of a rank table, a pod.

# bats file_tags=thorough
load ../helper
load ../hosts

setup_file() {
  SLURM=$BATS_FILE_TMPDIR/slurm
  if ! WHY_NOT=$(bash "$BATS_TEST_DIRNAME/../fixtures/slurm.sh" up "$SLURM" 2>&1); then
    WHY_NOT=${WHY_NOT:-"no Slurm here"}
  fi
  export SLURM WHY_NOT
}

teardown_file() {
  bash "$BATS_TEST_DIRNAME/../fixtures/slurm.sh" down "$SLURM"
}

setup() {
  pods_setup
  FRONT=("$PYTHON" "$SCRIPTS/../mindspore_launch/__main__.py")
}

teardown() {
  end_left_over
}

# front WORD...: mslaunch with four ranks' trainer on CPU
front() {
  "${FRONT[@]}" --device_target CPU --grace 2 "$@" "$FIXTURES/stub_trainer.py" --epochs 3
}

# four: rank_0 to rank_3 have run with the words behind the program.
four() {
  [[ "$(cd "$STUB_OUT" && ls rank_*)" == $'rank_0.json\nrank_1.json\nrank_2.json\nrank_3.json' ]] || fail "ran: $(ls "$STUB_OUT")"
  [[ "$(recorded rank_3 'r["argv"]')" == "['--epochs', '3']" ]] || fail "$(recorded rank_3 'r["argv"]')"
}

@test "this machine: the launcher starts the ranks" {
  ends 0 'mslaunch: 4 ranks on devices 0-3, logs in logs/mslaunch-*' front -n 4
  four
  [[ "$(launch_json 'r["script"]')" == mslaunch ]]
}

@test "an option names hosts: Open MPI starts the ranks" {
  need mpirun
  ends 0 'mslaunch: the options name hosts: Open MPI starts the ranks*' front -H localhost:4
  four
}

@test "an allocation: srun starts the ranks on its nodes, and --engine local does not" {
  [[ -z $WHY_NOT ]] || skip "$WHY_NOT"
  export SLURM_CONF=$SLURM/slurm.conf
  ends 0 "mslaunch: in Slurm's allocation *: srun starts the ranks on 2 nodes; --engine local: this machine alone*" \
    salloc --quiet -N 2 --ntasks-per-node=2 "${FRONT[@]}" --device_target CPU --grace 2 "$FIXTURES/stub_trainer.py" --epochs 3
  four
  [[ "$(recorded rank_2 'r["env"]["SERVER_ID"]')" == 1 ]]
  ends 0 'mslaunch: 2 ranks on devices 0,1, *' \
    salloc --quiet -N 2 --ntasks-per-node=2 "${FRONT[@]}" --engine local -n 2 --device_target CPU "$FIXTURES/stub_trainer.py"
}

@test "an allocation: -n is the number of all ranks, which the nodes share" {
  [[ -z $WHY_NOT ]] || skip "$WHY_NOT"
  export SLURM_CONF=$SLURM/slurm.conf
  ends 0 '*' salloc --quiet -N 2 --ntasks-per-node=2 "${FRONT[@]}" -n 4 --device_target CPU --grace 2 "$FIXTURES/stub_trainer.py" --epochs 3
  four
  ends 78 '*mslaunch: -n 3: each of the 2 nodes gets the same number of ranks; type -n 4, or --ntasks_per_node N' \
    salloc --quiet -N 2 --ntasks-per-node=2 "${FRONT[@]}" -n 3 --device_target CPU "$FIXTURES/stub_trainer.py"
}

@test "a rank table of several servers: each of them starts its own ranks" {
  server_table 10.99.0.9 127.0.0.2
  ends 0 '*mslaunch: hccl.json has 2 servers: this host starts its own ranks; type the command on each of them*' front --rank_table hccl.json
  [[ "$(cd "$STUB_OUT" && ls rank_*)" == $'rank_2.json\nrank_3.json' ]]
  [[ "$(recorded rank_3 '[r["env"][n] for n in ("RANK_SIZE", "DEVICE_ID", "MS_SCHED_HOST")]')" == "['4', '1', '10.99.0.9']" ]]
}

@test "a rank table of several servers that all are this host: the message says what to type" {
  server_table 127.0.0.2 127.0.0.3
  ends 78 '*hccl.json: several of its servers are this host (127.0.0.2 has ranks 0 to 1; 127.0.0.3 has ranks 2 to 3); * run_cluster takes RANK_START*' \
    front --rank_table hccl.json
}

@test "a pod of a job: each pod starts its own ranks" {
  table >"$TABLE"
  for pod in 0 1; do
    variables=(KUBERNETES_SERVICE_HOST=10.0.0.1 "POD_IP=127.0.0.$((pod + 2))" "XDL_IP=192.168.1.$((pod + 1))"
      "RANK_TABLE_FILE=$TABLE" MS_WORKER_NUM=4 MS_LOCAL_WORKER=2 "MS_NODE_RANK=$pod")
    set -m
    env "${variables[@]}" "${FRONT[@]}" --device_target CPU --log_dir "logs$pod" "$FIXTURES/stub_trainer.py" --epochs 3 \
      >"stdout$pod" 2>"stderr$pod" 3>&- &
    set +m
    PIDS[pod]=$!
  done
  wait "${PIDS[0]}" || fail "$(cat stderr0)"
  wait "${PIDS[1]}" || fail "$(cat stderr1)"
  four
  [[ "$(<stderr0)" == *'mslaunch: this is a pod of a job (RANK_TABLE_FILE is set); --engine local: this pod alone'* ]] || fail "$(<stderr0)"
}
