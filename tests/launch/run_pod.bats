#!/usr/bin/env bats
# run_pod.sh with the environment and the rank table of an operator; each pod is a launcher on an address of its own.

# bats file_tags=thorough
load ../helper
load ../hosts

setup() {
  pods_setup
}

@test "two pods start the ranks that the table gives them; the first has the scheduler and the console" {
  table >"$TABLE"
  export STUB_DO='0: print 3; 2: print 3'
  pod 0 --
  pod 1 --
  pod_ended 1 0 '*this pod has ranks 2,3 of 4, in a job of 2 pods; the log of the pod with rank 0 has the output*'
  [[ -z $output && $stderr != *$'\nrank '* && $stderr != *'exit 0'* ]] || fail "$output" "$stderr"
  pod_ended 0 0 '*this pod has ranks 0,1 of 4, in a job of 2 pods*'
  [[ $output == $'line 0\nline 1\nline 2\nno end' && $stderr == *'exit 0'* ]] || fail "$output" "$stderr"
  [[ $stderr != *'from your shell'* ]] || fail "$stderr"
  [[ "$(places RANK_ID DEVICE_ID RANK_SIZE LOCAL_RANK LOCAL_WORLD_SIZE SERVER_ID MS_WORKER_NUM MS_SCHED_HOST MS_ROLE MS_NODE_ID MS_SERVER_NUM MASTER_ADDR MS_LOCAL_WORKER MS_NODE_RANK)" = "\
0 0 4 0 2 0 4 127.0.0.2 MS_WORKER 0 - 127.0.0.2 2 0
1 1 4 1 2 0 4 127.0.0.2 MS_WORKER 1 - 127.0.0.2 2 0
2 0 4 0 2 1 4 127.0.0.2 MS_WORKER 2 - 127.0.0.2 2 1
3 1 4 1 2 1 4 127.0.0.2 MS_WORKER 3 - 127.0.0.2 2 1" ]] || fail "$(places RANK_ID MS_SCHED_HOST MS_SERVER_NUM)"
  cmp "$TABLE" "$(recorded rank_3 'r["env"]["RANK_TABLE_FILE"]')"
  nobody_left
}

@test "a rank fails: the pods end at once, with its code, and name it" {
  table >"$TABLE"
  export STUB_DO='0: wait; 1: wait; 2: wait; 3: await 0 1 2, exit 7'
  pod 0 --
  pod 1 --
  pod_ended 1 7 '*rank 3 (device 1) exited with code 7 after * s; stopping the other rank*rank 3 gives up*exit 7*'
  pod_ended 0 7 '*: 127.0.0.3: rank 3 (device 1) exited with code 7 after * s; stopping the ranks of this host*exit 7*'
  nobody_left
}

@test "a pod is killed: the others end at once and name it" {
  table >"$TABLE"
  export STUB_DO='0: wait; 1: wait; 2: wait; 3: wait'
  pod 0 --
  pod 1 --
  eventually ranks_up 0 1 2 3
  kill -KILL "${PIDS[1]}"
  pod_ended 0 255 '*: 127.0.0.3: its launcher is disconnected: it has closed the connection; stopping the ranks of this host*exit 255*'
}

@test "the pod of rank 0 is killed: the others end at once" {
  table >"$TABLE"
  export STUB_DO='0: wait; 1: wait; 2: wait; 3: wait'
  pod 0 --
  pod 1 --
  eventually ranks_up 0 1 2 3
  kill -KILL "${PIDS[0]}"
  pod_ended 1 255 '*: 127.0.0.2: its launcher is disconnected: it has closed the connection; stopping the ranks of this host*'
}

@test "the pod waits for the table, and says for what: missing, empty, initializing, half, of another job" {
  pod 1 --
  eventually says 1 "waiting: there is no rank table $TABLE (0 s of at most 1800 s)"
  : >"$TABLE"
  eventually says 1 "waiting: $TABLE is empty ("
  printf '{"status": "initializing"}' >"$TABLE"
  eventually says 1 "waiting: the status of $TABLE is \"initializing\", not \"completed\" ("
  table | head -c 300 >"$TABLE"
  eventually says 1 "waiting: $TABLE is incomplete: "
  table 127.0.0.7 127.0.0.8 >"$TABLE"
  eventually says 1 "has servers 127.0.0.7, 127.0.0.8, none of which is this pod (POD_IP=127.0.0.3, XDL_IP=192.168.1.2)"
  table 127.0.0.7 127.0.0.3 127.0.0.8 >"$TABLE"
  eventually says 1 "waiting: $TABLE has 6 ranks, MS_WORKER_NUM says 4; it is the table of another job, or of an earlier start ("
  [[ ! -e logs1 && -z "$(ls "$STUB_OUT")" ]]
  table >"$TABLE"
  pod 0 --
  pod_ended 0 0 '*'
  pod_ended 1 0 '*'
  ranks_up 0 1 2 3
}

@test "the table is never completed: exit 124 with the reason and where to look" {
  printf '{"status": "initializing"}' >"$TABLE"
  one_pod 124 '*waited for 1 s: the status of * is "initializing", not "completed"; look at: kubectl get pods -o wide*' -- --pod_wait 1
  [[ ! -e logs1 && -z "$(ls "$STUB_OUT")" ]]
}

@test "another pod does not come: exit 124 in those that wait for it, whichever it is" {
  table >"$TABLE"
  pod 0 -- --pod_wait 1
  pod_ended 0 124 '*: 127.0.0.3: is not ready after 1 s (127.0.0.3: 1 of 2 hosts)*exit 124*'
  one_pod 124 '*: 127.0.0.2: nobody answers at 127.0.0.2 port * after 1 s *exit 124*' -- --pod_wait 1
  [[ -z "$(ls "$STUB_OUT")" ]]
}

@test "with --keep_going a rank that fails ends neither its pod nor the others" {
  table >"$TABLE"
  export STUB_DO='0: wait; 1: wait; 2: wait; 3: await 0 1 2, exit 7'
  pod 0 -- --keep_going
  pod 1 -- --keep_going
  eventually says 1 'rank 3 (device 1) exited with code 7 '
  kill -TERM "${PIDS[1]}"
  pod_ended 1 7 '*; the other rank goes on*'
  kill -0 "${PIDS[0]}"
  kill -TERM "${PIDS[0]}"
  pod_ended 0 143 '*SIGTERM: stopping all ranks*'
}

@test "a table of an old operator has the nodes' addresses only: each pod ends by itself, and says so" {
  table | sed 's/"container_ip": "[^"]*", //g' >"$TABLE"
  one_pod 0 '*no container_ip, so the launchers of the pods cannot connect*this pod has ranks 2,3 of 4*' --
  [[ "$(places RANK_ID SERVER_ID)" = $'2 1\n3 1' ]]
}

@test "a table of a legacy format, as ModelArts writes it: the ranks get it as version 1.0" {
  table | python -c 'import json, sys
instances = [{"pod_name": f"job-{n}", "server_id": f"127.0.0.{n + 2}", "devices": [
    {"device_id": str(d), "device_ip": f"10.78.{n}.{d + 1}"} for d in (1, 0)]} for n in range(2)]
group = {"group_name": json.load(sys.stdin)["job"], "device_count": "4", "instance_count": "2", "instance_list": instances}
print(json.dumps({"status": "completed", "group_count": "1", "group_list": [group]}))' >"$TABLE"
  pod 0 --
  pod 1 --
  pod_ended 0 0 "*this pod has ranks 0,1 of 4*hccl.json is of a legacy format; read as version 1.0*"
  pod_ended 1 0 "*this pod has ranks 2,3 of 4*"
  [[ "$(places RANK_ID DEVICE_ID SERVER_ID)" = $'0 0 0\n1 1 0\n2 0 1\n3 1 1' ]]
  [[ "$(recorded rank_3 'json.load(open(r["env"]["RANK_TABLE_FILE"]))["version"]')" = 1.0 ]]
}

@test "a table of version 2.0, as ascend-operator writes it for an Atlas 950: a pod is found by its number" {
  printf '{"status": "initializing", "version": "2.0"}' >"$TABLE"
  pod 0 MS_SCHED_HOST=127.0.0.2 --
  pod 1 MS_SCHED_HOST=127.0.0.2 --
  eventually says 1 'is "initializing", not "completed"'
  table_950 >"$TABLE.new"
  mv "$TABLE.new" "$TABLE"
  pod_ended 0 0 "*this pod has ranks 0,1 of 4*"
  pod_ended 1 0 "*this pod has ranks 2,3 of 4*"
  [[ "$(places RANK_ID DEVICE_ID SERVER_ID MS_SCHED_HOST)" = $'0 0 0 127.0.0.2\n1 1 0 127.0.0.2\n2 0 1 127.0.0.2\n3 1 1 127.0.0.2' ]]
  cmp "$TABLE" "$(recorded rank_3 'r["env"]["RANK_TABLE_FILE"]')"
}

@test "version 2.0: pods that share a node have different devices, and a table of another job is waited for" {
  table_950 0 2 >"$TABLE"
  pod 0 MS_SCHED_HOST=127.0.0.2 --
  pod 1 MS_SCHED_HOST=127.0.0.2 --
  pod_ended 0 0 "*this pod has ranks 0,1 of 4*"
  pod_ended 1 0 "*this pod has ranks 2,3 of 4*"
  [[ "$(places RANK_ID DEVICE_ID SERVER_ID)" = $'0 0 0\n1 1 0\n2 2 1\n3 3 1' ]]
  table_950 0 0 0 >"$TABLE"
  one_pod 124 '*hccl.json has 6 ranks, MS_WORKER_NUM says 4; it is the table of another job, or of an earlier start*' \
    MS_SCHED_HOST=127.0.0.2 -- --pod_wait 0
}

@test "SIGTERM while the pod waits for the table ends it at once" {
  pod 1 --
  eventually says 1 waiting:
  kill -TERM "${PIDS[1]}"
  pod_ended 1 143 '*SIGTERM: no rank has started yet*'
  eventually nobody_left
}

@test "SIGTERM of a pod stops its ranks in order, and ends the others" {
  table >"$TABLE"
  export STUB_DO='0: wait; 1: wait; 2: wait; 3: wait'
  pod 0 --
  pod 1 --
  eventually ranks_up 0 1 2 3
  kill -TERM "${PIDS[1]}"
  pod_ended 1 143 '*SIGTERM: stopping all ranks*exit 143*'
  pod_ended 0 143 '*: 127.0.0.3: SIGTERM has stopped its launcher; stopping the ranks of this host*exit 143*'
  [[ "$(cat logs[01]/latest/request.json)" = $'{"GracefulExit": 1}\n{"GracefulExit": 1}' ]] || fail "$(tail logs?/latest/request.json)"
  nobody_left
}

# moved HOW: the operator writes the table anew while both pods train; both end with 138 and say why.
moved() {
  table >"$TABLE"
  export STUB_DO='0: wait; 1: wait; 2: wait; 3: wait'
  pod 0 --
  pod 1 --
  eventually ranks_up 0 1 2 3
  "$@"
  pod_ended 0 138 '*the job moves, and the operator starts it again*stopping the ranks of this host*exit 138*'
  pod_ended 1 138 '*the job moves, and the operator starts it again*stopping the ranks of this host*exit 138*'
  nobody_left
}

# in_place WORD...: a shared file is written in place
in_place() {
  "$@" >"$TABLE"
}

@test "the table goes back to initializing, in place: both pods end with 138" {
  moved in_place printf '{"status": "initializing"}'
  [[ "$(<stderr0)$(<stderr1)" == *'is "initializing", not "completed"'* ]]
}

# as_config_map WORD...: what the command prints is the new content of a ConfigMap's volume: a folder, a link to it that is
# replaced, and the file as a link through that link
as_config_map() {
  local folder
  folder=$(mktemp -d "$MOUNT/..2026_XXXXXX")
  "$@" >"$folder/hccl.json"
  ln -s "${folder##*/}" "$MOUNT/..data_tmp"
  mv -T "$MOUNT/..data_tmp" "$MOUNT/..data"
  [[ -L $TABLE ]] || ln -s ..data/hccl.json "$TABLE"
}

@test "a ConfigMap's link is swapped: the pods see the new table, whether they wait or train" {
  export STUB_DO='0: wait; 1: wait; 2: wait; 3: wait'
  as_config_map printf '{"status":"initializing"}'
  pod 0 --
  pod 1 --
  eventually says 0 'is "initializing"'
  eventually says 1 'is "initializing"'
  as_config_map table
  eventually ranks_up 0 1 2 3
  as_config_map table 127.0.0.2 127.0.0.9
  pod_ended 0 138 '*the job moves*'
  pod_ended 1 138 '*the job moves*'
}

# not_yet: half a table, and the same table again, which end nothing; then other servers, in place
not_yet() {
  local saved
  saved=$(<"$TABLE")
  printf '%s' "${saved:0:200}" >"$TABLE"
  eventually says 0 "note: $TABLE is incomplete: "
  eventually says 1 '; the ranks have a copy and go on'
  printf '%s\n\n' "$saved" >"$TABLE"
  kill -0 "${PIDS[0]}" && kill -0 "${PIDS[1]}"
  in_place table 127.0.0.2 127.0.0.9
}

@test "half a table, and the same table again, end nothing; other servers, in place, end both pods with 138" {
  moved not_yet
  [[ "$(<stderr0)$(<stderr1)" == *"$TABLE has been rewritten, with other servers or devices"* ]]
}

@test "with --max_restarts the pods restart together" {
  table >"$TABLE"
  export STUB_DO='0: first wait; 1: first wait; 2: first wait; 3: await 0 1 2, first exit 9'
  pod 0 -- --max_restarts 1
  pod 1 -- --max_restarts 1
  pod_ended 0 0 '*restart 1 of 1*'
  pod_ended 1 0 '*rank 3 (device 1) exited with code 9*restart 1 of 1*'
}

@test "--straggler and --metrics: each pod compares its own ranks and writes the file of its own" {
  local number
  table >"$TABLE"
  export STUB_DO='0: steps 400 20; 1: steps 200 40; 2: steps 400 20; 3: steps 400 20'
  for number in 0 1; do
    pod "$number" -- --straggler 1.5 --metrics "pod$number.prom"
  done
  pod_ended 1 0 '*'
  [[ $stderr != *'takes '*' times as long'* ]] || fail "$stderr"
  pod_ended 0 0 '*rank 1 (device 1 of *) takes 2.0 times as long as the median rank*slow: rank 1 (device 1 of *) took 2.0 times*'
  for number in 0 1; do
    [[ "$(sed -n 's/^mindspore_launch_\(exit_code\|ranks_expected\|stragglers\){.*} /\1 /p' "pod$number.prom" | sort)" = "\
exit_code 0
ranks_expected 2
stragglers $((1 - number))" ]] || fail "$(<"pod$number.prom")"
  done
}
