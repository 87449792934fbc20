#!/usr/bin/env bats
# --preflight: all hosts of a launch are compared before its ranks start. Real mpirun over real ssh, in the lab.

# bats file_tags=thorough
load ../helper
load ../lab/lab

setup() {
  need mpirun ssh
  setup_world
  HCCN=()
  unset PYTHONPATH
}

teardown() {
  lab_down
  end_left_over
}

# launch ARGUMENT...: from host 0, one rank on each of three hosts.
launch() {
  on 0 bash "$SCRIPTS/run_mpirun_1.sh" --device_target CPU --train_script "$FIXTURES/stub_trainer.py" --grace 2 --preflight "$@" \
    --config config.yaml -H node0:1,node1:1,node2:1
}

# lab_root HOST COMMAND...: as root of the host.
lab_root() {
  timeout -k 5 120 "$LAB_SH" root "$@"
}

@test "--preflight: hosts that are alike are one line, and the ranks start" {
  lab_up 3
  STUB_DO='' run --separate-stderr launch
  [[ $status -eq 0 && $(grep -c 'agree; nothing blocks' <<<"$stderr") -eq 1 ]] || fail "$status $stderr"
  [[ "$(launch_json 'r["preflight"]["verdict"], r["preflight"]["hosts"], sorted(r["preflight"]["digests"])')" == "('good', 3, ['node0', 'node1', 'node2'])" ]]
  [[ -s logs/preflight.json ]]
}

@test "--preflight: what would stop the job is said with its host, and nothing starts" {
  lab_up 3
  lab_root 2 mount -t tmpfs -o size=8m tmpfs /dev/shm
  STUB_DO='' run --separate-stderr launch
  [[ $status -eq 78 && $stderr == *'This stops the job:'*'node2: 8.0 MiB free in /dev/shm'*'--preflight: nothing was started'* ]] || fail "$status $stderr"
  [[ ! -e logs ]]
}

@test "--preflight: a difference that does not stop the job is said once, also on the page; a failed job says what has changed" {
  lab_up 3
  STUB_DO='' run launch
  [[ $status -eq 0 ]] || fail "$output"
  lab_root 2 ip link set eth0 mtu 1400
  STUB_DO='1: exit 7' run --separate-stderr launch --max_restarts 1 --report
  [[ $status -eq 7 ]] || fail "$status $stderr"
  [[ $(grep -c 'node2: MTU 1400; the other 2 hosts: 1500' <<<"$stderr") -eq 1 ]] || fail "$stderr"
  [[ $stderr == *'since the last job that ended well after --preflight (20'*'): node2: MTU 1400 instead of 1500; this may '* ]] || fail "$stderr"
  [[ "$(launch_json 'r["preflight"]["findings"][0]["text"]')" == 'node2: MTU 1400; the other 2 hosts: 1500' ]]
  grep -q 'node2: MTU 1400; the other 2 hosts: 1500' logs/latest/report.html
  python -c 'import json, sys, jsonschema; jsonschema.validate(*(json.load(open(path)) for path in sys.argv[1:]))' \
    logs/latest/launch.json "$PROJECT/schemas/launch.schema.json"
}

@test "--preflight on one host says that there is nothing to compare" {
  STUB_DO='' run --separate-stderr bash "$SCRIPTS/launch.sh" --device_target CPU --preflight -n 1 --train_script "$FIXTURES/stub_trainer.py" config.yaml
  [[ $status -eq 0 && $stderr == *'note: --preflight: with one host there is nothing to compare; bash '*doctor.sh* ]] || fail "$status $stderr"
  [[ "$(launch_json '"preflight" in r')" == False ]]
}

@test "--preflight of run_cluster.sh --hostfile asks the servers of the rank table that it builds" {
  lab_up 2
  printf 'node0 slots=8\nnode1 slots=8\n' >hosts
  STUB_DO='' run --separate-stderr on 0 bash "$SCRIPTS/run_cluster.sh" --device_target CPU --train_script "$FIXTURES/stub_trainer.py" --preflight \
    --config config.yaml --hostfile hosts .
  [[ $status -eq 0 && $stderr == *'run_cluster.sh: 2 hosts agree; nothing blocks'* ]] || fail "$status $stderr"
  [[ "$(launch_json 'r["preflight"]["verdict"], len(r["preflight"]["digests"])')" == "('good', 2)" ]]
}

@test "mslaunch --preflight refuses a host that is off, and with --dry_run asks nobody" {
  lab_up 2
  "$LAB_SH" off 1
  local -r command=("$PYTHON" -m mindspore_launch --device_target CPU --preflight --no_check -H "node0:1,node1:1" --train_script "$FIXTURES/stub_trainer.py")
  STUB_DO='' run --separate-stderr on 0 env PYTHONPATH="$PROJECT" "${command[@]}" --dry_run config.yaml
  [[ $status -eq 0 && $output == *mpirun* ]] || fail "$status $stderr"
  STUB_DO='' run --separate-stderr on 0 env PYTHONPATH="$PROJECT" "${command[@]}" config.yaml
  [[ $status -eq 78 && $stderr == *'mslaunch:   node1: no answer; '*'mslaunch: --preflight: nothing was started'* && ! -e logs ]] || fail "$status $stderr"
}
