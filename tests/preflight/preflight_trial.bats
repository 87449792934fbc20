#!/usr/bin/env bats
# preflight.sh --trial: a short job on hosts of the lab, which finds the host that fails or is slow.

# bats file_tags=thorough
load ../helper
load ../lab/lab

setup() {
  setup_world
  python -c 'import numpy' || skip 'needs NumPy'
  export PYTHONPATH=$FIXTURES/trial_mindspore
}

teardown() {
  lab_down
  end_left_over
}

# trial N ARGUMENT...: a trial on the first N hosts, from host 0; more than the usual time for it.
trial() {
  timeout -k 5 300 "$LAB_SH" run 0 bash "$SCRIPTS/preflight.sh" --trial -H "node[0-$(($1 - 1))]" "${@:2}"
}

@test "trial: this host alone passes, what each rank took is printed, and nothing is left in the folder but logs" {
  printf '%01000d' 1 >data
  ends 0 '*: the trial starts 2 ranks on 1 host: *' bash "$SCRIPTS/preflight.sh" --trial --data data
  for text in 'The trial of 2 ranks on 1 host passed:' '  AllReduce of 16 MiB: ' '  matmul: ' '  reading 1 MiB of the data: '; do
    [[ $output == *"$text"* ]] || fail "$output"
  done
  [[ $output != *'leave out'* && "$(echo *)" == 'config.yaml data hccn.conf logs' ]] || fail "$(ls)" "$output"
  nobody_left
}

@test "trial: of 4 hosts the one whose rank fails is found, and the commands that leave it out are printed" {
  need mpirun ssh
  lab_up 4
  STUB_TRIAL='node2: exit 3' run --separate-stderr trial 4
  [[ $status -eq 78 ]] || fail "$status: $output $stderr"
  [[ $(grep '^  [^ ]' <<<"$output" | head -n 1) == '  node2: a job on it and node0 fails, jobs without it pass: rank '?' ended with exit code 3' ]] || fail "$output"
  [[ $output == *'The trial of 3 ranks on 3 hosts passed:'*'Commands that leave out node2, not run:
  for the launch: --exclude node2
  for Slurm: scontrol update nodename=node2 state=drain reason='*'
  for Kubernetes: kubectl cordon node2
  for MindCluster'* ]] || fail "$output"
  [[ $(grep -c 'a job on' <<<"$output") -eq 1 ]] || fail "$output"
}

@test "trial: of 4 hosts the one that is slow is found, again beside a good one" {
  need mpirun ssh
  lab_up 4
  STUB_TRIAL='node1: slow' run --separate-stderr trial 4 --json
  [[ $status -eq 1 ]] || fail "$status: $output $stderr"
  [[ $(python -c 'import json, sys; r = json.load(sys.stdin)
print([(d["fact"], d["groups"][0]["hosts"]) for d in r["differences"]], r["trial"]["jobs"], r["trial"]["advice"][0]["text"])' <<<"$output") == "[('trial:matmul', ['node1'])] 2 --exclude node1" ]] || fail "$output"
}

@test "trial: a cause that all hosts have is one line, and no host is to be left out" {
  need mpirun ssh
  lab_up 3
  STUB_TRIAL='node0: exit 3; node1: exit 3; node2: exit 3' run --separate-stderr trial 3
  [[ $status -eq 78 && $output == *'none of '*' jobs on several of these hosts passed'* && $output != *'leave out'* ]] || fail "$output $stderr"
}

@test "trial: a host has this project, and nothing else of ours, in another folder: its ranks find the program there" {
  local parts=(configs hccl_tools schemas scripts tools)
  need mpirun ssh
  lab_up 2
  mkdir -p here/one site/mindspore_launch
  cp -r "${parts[@]/#/$PROJECT/}" "$PROJECT/mindspore_launch" here/one
  cp -r "${parts[@]/#/$PROJECT/}" "$PROJECT"/mindspore_launch/*.py site/mindspore_launch
  "$LAB_SH" root 1 mount -t tmpfs tmpfs "$WORLD/here" # neither the project, nor the current folder, nor the logs
  SCRIPTS=$WORLD/here/one/scripts PYTHONPATH=$PYTHONPATH:$WORLD/site
  cd here
  run --separate-stderr trial 2 --json
  [[ $status -le 1 ]] || fail "$status: $output $stderr"
  [[ $(python -c 'import json, sys; r = json.load(sys.stdin)["trial"]
print(r["passed"], sorted({f["host"] for f in r["figures"] if f["measure"] == "matmul"}))' <<<"$output") == "['node0', 'node1'] ['node0', 'node1']" ]] || fail "$output"
}

# bats test_tags=trains
@test "trial: real MindSpore on two hosts joins, reduces, multiplies and reads" {
  need mpirun ssh
  need_mindspore
  lab_up 2
  digits_in data
  run --separate-stderr trial 2 --data data --json
  [[ $status -le 1 ]] || fail "$status: $output $stderr"
  [[ $(python -c 'import json, sys; r = json.load(sys.stdin)["trial"]
print(r["passed"], sorted({f["measure"] for f in r["figures"]}))' <<<"$output") == "['node0', 'node1'] ['allreduce_16m', 'allreduce_1k', 'allreduce_1m', 'join', 'matmul', 'pair_0', 'read']" ]] || fail "$output"
}

@test "trial: whoever kills the command ends its job, too" {
  STUB_TRIAL="$(uname -n): wait" behind bash "$SCRIPTS/preflight.sh" --trial
  eventually ranks_wait
  kill -KILL "$LAUNCHER"
  eventually nobody_left
}

# ranks_wait: both ranks have begun, as their logs say
ranks_wait() {
  [[ $(cat logs/preflight_trial-*/job_1/latest/rank_?.log 2>/dev/null) == $'waits\nwaits' ]]
}
