#!/usr/bin/env bats
# Thousands of ranks, of a simulated mpirun and a simulated srun (tests/fixtures/many_agents): every rank is counted, and
# what people read stays short. `make bench ONLY=scale` has the times.

load ../helper

setup() {
  setup_world
  HCCN=()
  PATH=$FIXTURES/many_agents:$PATH
  export AGENTS_SECONDS=0
}

# many HOSTS OPTION...: a job on so many hosts with 8 ranks each
many() {
  local i
  for ((i = 0; i < $1; i++)); do
    printf '127.1.%d.%d slots=8\n' $((i / 250)) $((i % 250 + 1))
  done >hostfile
  launch run_mpirun_2.sh --no_check --config config.yaml "${@:2}" hostfile
}

# members EXPRESSION: of {name: (status, process id)} of launch.json's members `m`
members() {
  launch_json "(lambda m: ($1))({name: (how['status'], how['pid']) for name, how in r['outcome']['members'].items()})"
}

# bats test_tags=slow
@test "mpirun: 2,000 ranks start and end in one moment, and none is lost" {
  ends 0 $'*\n0: ranks 0-1999\n*' many 250
  [[ "$(members 'all(m[str(n)] == (0, 400000 + n) for n in range(2000))')" = True ]]
}

# bats test_tags=slow
@test "srun: the same" {
  export SLURM_JOB_ID=77 SLURM_JOB_NODELIST='n[0-249]' SLURM_NTASKS_PER_NODE=8 SLURMD_NODENAME=n0
  ends 0 $'*\n0: ranks 0-1999\n*' launch run_slurm.sh config.yaml
  [[ "$(members 'sum(status == 0 for status, _ in m.values())')" -ge 2001 ]]
}

# bats test_tags=slow
@test "one of 2,000 fails: it is named, the others are stopped" {
  AGENTS_FAIL=1234 ends 3 '*rank 1234 (device 2 of 127.1.0.155) exited with code 3 after *; stopping the other 1999 ranks
*1234  2       127.1.0.155     3, failed first *
143 SIGTERM, stopped by us: ranks 0-1233,1235-1999
*' many 250
  [[ "$(members 'm["1234"][0], {m[str(n)][0] for n in range(2000)}')" = '(3, {3, 143})' ]]
  [[ "$(launch_json 'r["outcome"]["first_failure"]')" = 1234 ]]
}

# bats test_tags=slow
@test "srun: the same of the order to stop, which is a line there" {
  export SLURM_JOB_ID=78 SLURM_JOB_NODELIST='n[0-249]' SLURM_NTASKS_PER_NODE=8 SLURMD_NODENAME=n0
  AGENTS_FAIL=7 ends 3 '*rank 7 (device 7 of n0) exited with code 3 *143 SIGTERM, stopped by us: ranks 0-6,8-1999*' \
    launch run_slurm.sh config.yaml
}

# bats test_tags=slow
@test "every third of 2,000 fails while the others go on: a few lines and a number, not a thousand lines" {
  AGENTS_FAIL=0::3 ends 3 '*rank 0 (device 0 of 127.1.0.1) exited with code 3 *; the other 1999 ranks go on*
*: 667 of 2000 ranks failed: ranks 0,3,6,*57 and 647 more (--keep_going)*' many 250 --keep_going
  [[ $stderr == *'more ranks fail; the report at the end names them'* ]] || fail "$stderr"
  [[ $(grep -c 'exited with code' <<<"$stderr") -le 40 ]]
  [[ "$(members 'sum(status == 3 for status, _ in m.values())')" -eq 667 ]]
  [[ "$(launch_json 'len(r["outcome"]["also_failed"])')" -eq 666 ]]
}

# bats test_tags=slow
@test "an engine that ends without a word about half of its ranks" {
  AGENTS_LOST=1000: ends 255 $'*\nend not reported: ranks 1001-1999\n*' many 250
  [[ "$(members 'm["999"][0], {m[str(n)][0] for n in range(1000, 2000)}')" = '(0, {255})' ]]
}

# bats test_tags=slow
@test "a hang of 2,000 ranks: those at the same place share a line" {
  AGENTS_SECONDS=60 ends 124 '*no rank has written *: ranks 0,2,4,*and 980 more: train.py:3 in step*: ranks 1,3,5,* and 980 more: train.py:4 in step*143 SIGTERM, stopped by us: ranks 0-1999*' \
    many 250 --hang_timeout 1
}

# bats test_tags=slow
@test "--console all of more logs than files may be open: it says so, and shows one" {
  ulimit -Sn 300
  ulimit -Hn 464
  ends 0 '*--console all shows rank 0 only: it needs 464 open files, but ulimit -n is 300; type: ulimit -n 464*' many 50 --console all
  [[ $stderr != *'Too many open files'* ]]
  ulimit -Hn 463
  ends 0 '*it needs 464 open files, but ulimit -n is 300; raise nofile in /etc/security/limits.conf to 65536 or more*' \
    many 50 --console all
}
