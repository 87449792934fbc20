#!/usr/bin/env bats
# The command line of mindformers' msrun_launcher.sh: one quoted command, then words whose place counts.

load ../helper

setup() {
  setup_world
  printf 'import json, os, sys\nprint(json.dumps([sys.argv, os.environ["RANK_ID"], os.environ["MS_TOPO_TIMEOUT"]]))\n' >net.py
}

# planned WORD...: --dry_run of the script; what it would start is in `output`
planned() {
  ends 0 '*' bash "$SCRIPTS/msrun_launcher.sh" --device_target CPU --dry_run "$@"
}

# has TEXT...: the plan has all of them
has() {
  local text
  for text; do
    [[ $output == *" $text"* ]] || fail "no $text in:" "$output" || return
  done
}

# bats test_tags=slow
@test "the command alone: 8 ranks on a free port, in output/msrun_log, 7200 s for them to come" {
  planned "net.py --config 'a b.yaml' --run_mode train"
  has --worker_num=8 --local_worker_num=8 --join=True --cluster_time_out=7200 "net.py --config a\\ b.yaml --run_mode train"
  [[ $output == *"mkdir -p '$PWD'/output/msrun_log/msrun_launcher-"* || $output == *'output/msrun_log/msrun_launcher-'* ]] || fail "$output"
  [[ $output != *master_port=8118* ]] || fail "$output"
  [[ $stderr == 'msrun_launcher.sh: note: the launch waits for its ranks, even with JOIN False; '* ]] || fail "$stderr"
  planned --worker_num 2 --log_dir mine net.py
  has --worker_num=2
  [[ $output == */mine/msrun_launcher-* && $output != *output/msrun_log* ]] || fail "$output"
}

@test "WORKER_NUM; the 5 words of one host; the 8 of several" {
  planned 'python net.py' 3
  has --worker_num=3 --local_worker_num=3 'net.py'
  planned net.py 4 8119 out False 99
  has --worker_num=4 --local_worker_num=4 --master_port=8119 --cluster_time_out=99
  [[ $output == */out/msrun_launcher-* && $stderr == *'note: the launch waits for its ranks'* ]] || fail "$output" "$stderr"
  planned net.py 4 2 192.0.2.1 8119 1 out True 99 --local_worker_num 2 --max_restarts 1 --restart_args '-x "1 2"'
  has --worker_num=4 --local_worker_num=2 --master_addr=192.0.2.1 --master_port=8119 --node_rank=1 --cluster_time_out=99
  [[ -z $stderr && $output == *'from the second attempt on it runs: '*' net.py -x 1\ 2'* ]] || fail "$output" "$stderr"
}

@test "on one host, the address and the number of the host are not used" {
  planned net.py 2 2 no.such.host 8119 7 out True 99
  has --worker_num=2 --master_addr=127.0.0.1 --master_port=8119 --node_rank=0
  [[ $stderr == 'msrun_launcher.sh: note: all 2 ranks are on this host: MASTER_ADDR and NODE_RANK are not used' ]] || fail "$stderr"
}

# bats test_tags=thorough
@test "what cannot be started is said in one line, and nothing is" {
  while IFS='|' read -r code words message; do
    words=${words//Q/\'} message=${message//Q/\'}
    # shellcheck disable=SC2086 # several words
    refused_later "$code" "msrun_launcher.sh: $message" bash "$SCRIPTS/msrun_launcher.sh" --device_target CPU $words
  done <<'LIST'
2||COMMAND is missing; see: *
2|net.py 1 2|2 arguments after the command; write none, WORKER_NUM alone, 5 or 8; see: *
2|net.py 1 2 3 4 5 6 7 8 9|9 arguments after the command; *
2|Qnet.py|the quoted command: a quote is not closed: Qnet.py
2|net.py two|--worker_num two is not a number from 1 to 65536
2|net.py 2 8118 out maybe 99|JOIN maybe: write True or False; *
2|net.py 2 8118 out False soon|--cluster_time_out soon is not a time: *
2|--worker_num 4 net.py 2|--worker_num 4 and the word 2 after the command contradict each other; *
2|net.py 4 2 127.0.0.1 8118 0 out False 99|--master_addr 127.0.0.1 can be reached only from this host; *
2|--train_script net.py net.py|unknown option --train_script*
78|none.py|none.py: no such file in *
LIST
  refused_later 2 'msrun_launcher.sh: the quoted command has no word in it' bash "$SCRIPTS/msrun_launcher.sh" --device_target CPU ' '
  # shellcheck disable=SC2016 # the text is meant
  refused_later 78 '*$(touch*' bash "$SCRIPTS/msrun_launcher.sh" --device_target CPU '$(touch evil).py; touch evil'
  all_refused
  [[ ! -e output && ! -e out ]]
  [[ ! -e evil ]] || fail 'the command was evaluated'
}

# bats test_tags=thorough
@test "msrun starts the command, with the user's words, time and logs" {
  need_mindspore
  PYTHONPATH=$FIXTURES/quick_msrun
  ends 0 '*' bash "$SCRIPTS/msrun_launcher.sh" --device_target CPU "net.py 'a b' \$X" 2 --quiet
  [[ "$(<output/msrun_log/latest/rank_1.log)" = '[["net.py", "a b", "$X"], "1", "7200"]' ]] || fail "$(<output/msrun_log/latest/rank_1.log)"
  [[ -z $stderr ]] || fail "$stderr"
}

# bats test_tags=thorough
@test "from the second attempt on, msrun starts the command with --restart_args" {
  need_mindspore
  PYTHONPATH=$FIXTURES/quick_msrun
  cp "$FIXTURES/stub_trainer.py" .
  STUB_DO='0: first wait; 1: await 0, first exit 7' ends 0 '*restart 1 of 1*' bash "$SCRIPTS/msrun_launcher.sh" --device_target CPU \
    --max_restarts 1 --restart_args '-o "r s"' 'stub_trainer.py a' 2
  [[ "$(recorded rank_1 'r["argv"]')" = "['a', '-o', 'r s']" ]]
}
