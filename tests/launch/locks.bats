#!/usr/bin/env bats
# Locks on devices: the launcher's own file, what others put in its way, and several users of one host.

# bats file_tags=thorough
load ../helper

setup() {
  setup_world
  MINE=$LAUNCH_LOCKS/mindspore-launch-$EUID
  mkdir -m 1777 "$LAUNCH_LOCKS"
}

# job: a launch on devices 0 and 1 that ends well and has a lock
job() {
  STUB_DO='' launch_behind ascend2p.sh --device_target Ascend --no_check config.yaml
  ended 0
  [[ $stderr != *'other jobs cannot see'* ]] || fail "$stderr"
}

# first_job: the same that runs until it is told to end
first_job() {
  launch_ranks '0: wait; 1: wait' ascend2p.sh --device_target Ascend --no_check config.yaml
  rm "$STUB_OUT"/*
  FIRST=$LAUNCHER
}

# waiting_job: another one that waits for device 0
waiting_job() {
  STUB_DO='' launch_behind ascend1p.sh --device_target Ascend --no_check --wait_for_devices config.yaml
  eventually grep -q 'waiting: device 0 in use by' "$BATS_TEST_TMPDIR/stderr"
}

@test "the folder is this user's, whatever EUID the environment has" {
  stubbed ascend2p.sh --device_target Ascend --no_check config.yaml
  env EUID=54321 "${STUBBED[@]}"
  [[ -d $MINE && ! -e $LAUNCH_LOCKS/mindspore-launch-54321 ]] || fail "$(ls "$LAUNCH_LOCKS")"
}

@test "a pipe among the locks stops no launch" {
  mkdir -m 755 "$MINE"
  mkfifo -m 666 "$LAUNCH_LOCKS/1.1" "$MINE/1.1" "$LAUNCH_LOCKS/mindspore-launch-1"
  job
  [[ "$(ls "$MINE")" = 1.1 ]]
}

@test "when others have taken the name of our folder, it gets another name" {
  ln -s "$BATS_TEST_TMPDIR/victim" "$MINE"
  printf '' >"$MINE-1"
  mkdir "$BATS_TEST_TMPDIR/victim"
  ((EUID)) || chown 54321 "$MINE-1"
  ((!EUID)) || rm "$MINE-1"
  first_job
  [[ -z "$(ls "$BATS_TEST_TMPDIR/victim")" ]]
  [[ "$(cat "$MINE"-[12]/"$FIRST".*)" == '{"state": "h", '*'"devices": [0, 1], '* ]] || fail "$(ls -l "$MINE"*)"
  end_by TERM 143
  [[ -z "$(ls "$MINE"-[12]/)" ]]
}

@test "where others can rename our folder there are no locks, and it is said" {
  chmod 777 "$LAUNCH_LOCKS"
  STUB_DO='' ends 0 "*other jobs cannot see which devices this one uses: $LAUNCH_LOCKS: others can rename *chmod +t*" \
    launch_npu ascend2p.sh config.yaml
  chmod 1777 "$LAUNCH_LOCKS"
  job
  chmod 775 "$MINE"
  STUB_DO='' ends 0 "*other jobs cannot see which devices this one uses: $MINE: others can write it; *chmod go-w*" \
    launch_npu ascend2p.sh config.yaml
  [[ -z "$(ls "$MINE")" ]]
}

@test "in a folder of another user, where all can rename what is in it, nothing is made" {
  need_root "to give the folder to another user"
  chmod 777 "$LAUNCH_LOCKS" && chown 54321 "$LAUNCH_LOCKS"
  STUB_DO='' ends 0 "*other jobs cannot see which devices this one uses: $LAUNCH_LOCKS: *" launch_npu ascend2p.sh config.yaml
  [[ -z "$(ls "$LAUNCH_LOCKS")" ]]
}

@test "a link in the place of the locks' folder is not followed" {
  mkdir "$BATS_TEST_TMPDIR/victim"
  ln -s "$BATS_TEST_TMPDIR/victim" "$BATS_TEST_TMPDIR/link"
  for end in '' /; do
    LAUNCH_LOCKS=$BATS_TEST_TMPDIR/link$end STUB_DO='' ends 0 '*other jobs cannot see *: '"$BATS_TEST_TMPDIR/link: "* \
      launch_npu ascend2p.sh config.yaml
  done
  [[ -z "$(ls "$BATS_TEST_TMPDIR/victim")" ]]
}

@test "a job that waits keeps its lock however long, and starts when the device is free" {
  first_job
  waiting_job
  find "$LAUNCH_LOCKS" -type f -exec touch -d 2001-01-01 {} +
  mkdir other && cp config.yaml hccn.conf other && cd other
  refused 78 '*device 1 in use by *' launch_npu ascend1p.sh --devices 1 config.yaml
  cd ..
  find "$LAUNCH_LOCKS" -name "$LAUNCHER.*" | grep .
  kill -TERM "$FIRST"
  ended 0
  [[ -z "$(ls "$MINE")" ]]
}

@test "when a launcher that waits is killed, nothing of it takes the devices later" {
  first_job
  waiting_job
  kill -KILL "$LAUNCHER"
  eventually gone "$LAUNCHER"
  kill -TERM "$FIRST"
  eventually gone "$FIRST"
  STUB_DO='' ends 0 '*' launch_npu ascend1p.sh config.yaml
  [[ -z "$(ls "$MINE")" ]] # the next launch has removed what the killed one has left
}

@test "when the launcher is gone and a rank has the device, it is said how to find the rank" {
  first_job
  pkill -KILL -P "$FIRST" -f mindspore-launch-guardian
  kill -KILL "$FIRST"
  eventually gone "$FIRST"
  run -78 --separate-stderr launch_npu ascend1p.sh config.yaml
  [[ $stderr == *"(process $FIRST of "*", since "*"; it has ended, but one of its ranks may still run: see fuser -v $MINE/$FIRST."* ]] \
    || fail "$stderr"
}

@test "two users of a host see each other's jobs" {
  need_root "to become another user"
  python_of_all 54321
  chmod a+rx "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR" && chmod -R a+rwX .. "$STUB_OUT"
  first_job
  local -r theirs=$LAUNCH_LOCKS/mindspore-launch-54321
  stubbed ascend1p.sh --no_check --log_dir theirs config.yaml
  STUB_DO='' run -78 --separate-stderr setpriv --reuid 54321 --clear-groups "${STUBBED[@]}"
  [[ $stderr == *"device 0 in use by $WORLD/logs/ascend2p-"*"(process $FIRST of $(id -un), since "* ]] || fail "$stderr"
  [[ "$(stat -c %u "$theirs")" = 54321 && -z "$(ls "$theirs")" ]]
  STUB_DO='' run -0 --separate-stderr setpriv --reuid 54321 --clear-groups "${STUBBED[@]}" --devices 5
  end_by TERM 143
  [[ -z "$(ls "$MINE")" ]]
}

# ---- HCCL's ports --------------------------------------------------------------------------------

# ports RANK: what the rank has of HCCL's ports
ports() {
  recorded "rank_$1" '{n: v for n, v in sorted(r["env"].items()) if n.startswith("HCCL_") and "PORT" in n}'
}

# same_ports: HCCL_IF_BASE_PORT of both ranks, which the launcher chose; 61024, unless something listens there
same_ports() {
  local chosen
  chosen=$(recorded rank_0 'r["env"].get("HCCL_IF_BASE_PORT", "0")')
  ((chosen >= 61024 && (chosen - 61024) % 32 == 0)) || fail "$(ports 0)" || return
  [[ "$(ports 0)$(ports 1)" = "{'HCCL_IF_BASE_PORT': '$chosen'}{'HCCL_IF_BASE_PORT': '$chosen'}" ]] || fail "$(ports 0) $(ports 1)" || return
  printf '%s\n' "$chosen"
}

@test "two jobs of one host have other ports of HCCL, and the one that is alone keeps the default" {
  unset HCCL_IF_BASE_PORT HCCL_HOST_SOCKET_PORT_RANGE HCCL_NPU_SOCKET_PORT_RANGE
  launch_ranks '0: wait; 1: wait' ascend2p.sh --device_target Ascend --no_check config.yaml
  [[ "$(ports 0)$(ports 1)" = '{}{}' && "$(launch_json 'r["hccl"]')" = "{'ports': '60000-60031', 'origin': 'default'}" ]]
  [[ "$(cat "$MINE/$LAUNCHER".*)" == *'"ports": [[60000, 60031]], '* ]] || fail "$(cat "$MINE"/*)"
  local -r first=$LAUNCHER
  rm "$STUB_OUT"/*
  STUB_DO='' ends 0 "*HCCL gets the ports 6* in this job: */ascend2p-* has 60000-60031 (process $first)*" \
    launch_npu ascend2p.sh --devices 2,3 config.yaml
  local chosen
  chosen=$(same_ports)
  [[ $stderr == *"HCCL gets the ports $chosen-$((chosen + 31)) in this job"* ]]
  [[ "$(launch_json 'r["hccl"]')" = "{'ports': '$chosen-$((chosen + 31))', 'origin': 'chosen'}" ]]
  launch_json_fits
  kill -TERM "$first"
  eventually nobody_left
}

@test "--dry_run shows HCCL's ports, and ports of the user's that another job has are refused" {
  unset HCCL_HOST_SOCKET_PORT_RANGE HCCL_NPU_SOCKET_PORT_RANGE
  HCCL_IF_BASE_PORT=61500 launch_ranks '0: wait; 1: wait' ascend2p.sh --device_target Ascend --no_check config.yaml
  [[ "$(ports 1)" = "{'HCCL_IF_BASE_PORT': '61500'}" ]] || fail "$(ports 1)"
  rm "$STUB_OUT"/*
  mkdir other && cp config.yaml hccn.conf other && cd other
  unset HCCL_IF_BASE_PORT
  ends 0 '*' launch_npu ascend2p.sh --devices 2,3 --dry_run config.yaml
  [[ $output == *"# HCCL listens at ports 60000-60031: HCCL's default"* ]] || fail "$output"
  HCCL_IF_BASE_PORT=61510 refused 78 "*HCCL_IF_BASE_PORT=61510: HCCL listens at 61510-61541, but * has 61500-61531 (process $LAUNCHER); unset HCCL_IF_BASE_PORT*" \
    launch_npu ascend2p.sh --devices 2,3 config.yaml
  kill -TERM "$LAUNCHER"
  eventually nobody_left
}

@test "mpirun and msrun hand HCCL's ports on to their ranks" {
  need mpirun
  need_mindspore
  export PYTHONPATH=$FIXTURES/quick_msrun # the real msrun; its trainers are stubs
  unset HCCL_IF_BASE_PORT HCCL_HOST_SOCKET_PORT_RANGE HCCL_NPU_SOCKET_PORT_RANGE
  first_job
  HCCN=()
  local script
  for script in run_mpirun.sh\ -n run_msrun.sh\ --worker_num; do
    # shellcheck disable=SC2086 # a script and its option
    STUB_DO='' ends 0 '*' launch_npu ${script% *} --device_target Ascend ${script#* } 2 --devices 2,3 config.yaml
    same_ports || fail "$script"
    rm "$STUB_OUT"/*
  done
  kill -TERM "$FIRST"
  eventually nobody_left
}

# eight_npus: simulated ones, of which a job may have some
eight_npus() {
  export HCCN_SIM=$BATS_TEST_TMPDIR/cards NPU_SIM=$BATS_TEST_TMPDIR/cards PATH=$FIXTURES/bin:$PATH
  mkdir "$HCCN_SIM"
  cp "$PROJECT/configs/demo_hccn.conf" "$HCCN_SIM/hccn.conf"
  echo 8 >"$HCCN_SIM/devices"
  echo none >"$HCCN_SIM/pod"
  HCCN=()
}

# derived RANK_START WORD...: HCCL_IF_BASE_PORT of run_cluster.sh for that server of hccl.json
derived() {
  ends 0 '*' launch_npu run_cluster.sh --dry_run --config config.yaml "${@:2}" data hccl.json 4 "$1"
  sed -n 's/^export .*HCCL_IF_BASE_PORT=\([0-9]*\).*/\1/p' <<<"$output"
}

@test "typed on each host, a job that has some of the devices derives the same ports of HCCL there" {
  unset HCCL_IF_BASE_PORT HCCL_HOST_SOCKET_PORT_RANGE HCCL_NPU_SOCKET_PORT_RANGE
  eight_npus
  mkdir data
  python - >hccl.json <<'PY'
import json
servers = [
    {"server_id": f"127.0.0.{2 + n}", "device": [
        {"device_id": str(d), "device_ip": f"10.78.{n}.{d + 1}", "rank_id": str(2 * n + d)} for d in range(2)]}
    for n in range(2)
]
print(json.dumps({"version": "1.0", "server_count": "2", "server_list": servers, "status": "completed"}))
PY
  local first
  first=$(derived 0)
  [[ $first -ge 61024 && $first -le 65504 && "$(derived 2)" = "$first" ]] || fail "$first $(derived 2)"
  echo 2 >"$HCCN_SIM/devices" # the job has the hosts alone
  [[ -z "$(derived 0)$(derived 2)" ]] || fail "$(derived 0)"
}
