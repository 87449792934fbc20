#!/usr/bin/env bats
# A program instead of a config: which words it gets, under every script, and what is refused.

load ../helper

setup() {
  setup_world
  printf 'import json, os, sys\nprint(json.dumps([sys.argv, os.environ["RANK_ID"], os.environ["RANK_SIZE"]]))\n' >program.py
  ln -s ../program.py "$BATS_TEST_TMPDIR/link.py"
  mkdir package
  cp program.py package/__main__.py
  printf '#!/bin/sh\nexport FROM_SHELL=1\nexec "%s" program.py from-shell "$@"\n' "$PYTHON" >start.sh
  chmod +x start.sh
}

teardown() {
  end_left_over
}

# cpu SCRIPT WORD...: the script on CPU
cpu() {
  bash "$SCRIPTS/$1" --device_target CPU "${@:2}"
}

# gets WORDS COMMAND...: both ranks end with 0, and rank 1 had these words, as a list of Python
gets() {
  ends 0 '*' "${@:2}"
  [[ "$(python -c 'import json, sys; print(json.load(open(sys.argv[1]))[0])' logs/latest/rank_1.log)" = "$1" ]] || fail "$(<logs/latest/rank_1.log)"
}

# bats test_tags=thorough
@test "a Python file gets its words as they stand: options of ours, --, blanks, newlines" {
  gets "['program.py', '--dry_run', '-n', '4', '--', '--help', '', 'a b', 'c\\nd']" \
    cpu ascend2p.sh program.py --dry_run -n 4 -- --help '' 'a b' $'c\nd'
  gets "['program.py', '--epochs', '1']" cpu launch.sh -n 2 -- program.py --epochs 1
  gets "['--config', 'x']" cpu launch.sh -n 2 python -c 'import json, sys; print(json.dumps([sys.argv[1:]]))' --config x
}

# bats test_tags=thorough
@test "a module, a shell script, a program on PATH, --train_script alone" {
  ends 0 '*' cpu launch.sh -n 2 -m package -x
  grep -q '/package/__main__.py", "-x"\], "1", "2"' logs/latest/rank_1.log
  gets "['program.py', 'from-shell', '--a']" cpu launch.sh -n 2 ./start.sh --a
  gets "['program.py', 'from-shell', '--a']" cpu launch.sh -n 2 start.sh --a
  gets "['program.py', '3']" cpu ascend2p.sh --train_script program.py -- 3
  ends 0 '*' cpu launch.sh -n 3 env
  grep -qx RANK_ID=2 logs/latest/rank_2.log
}

# bats test_tags=thorough
@test "GPUs: launch.sh starts ranks with a scheduler and without a rank table; MindSpore must take GPUs if somebody asks for them" {
  mkdir bin
  printf '#!/bin/sh\necho "GPU 0: A"\necho "GPU 1: B"\n' >bin/nvidia-smi
  chmod +x bin/nvidia-smi
  export PATH=$WORLD/bin:$PATH
  gets "['program.py']" bash "$SCRIPTS/launch.sh" -n 2 program.py
  [[ "$(launch_json 'r["device_target"], len(r["scheduler"]) > 0, "RANK_TABLE_FILE" in r["exports"]')" = "('GPU', True, False)" ]]
  mkdir mindspore
  printf 'def set_context(device_target):\n    raise RuntimeError("Unsupported device target GPU.")\n' >mindspore/__init__.py
  printf 'import mindspore\n' >net.py
  export PYTHONPATH=$WORLD
  bash "$SCRIPTS/launch.sh" -n 2 --dry_run net.py >plan # it may use CPU
  ends 78 'launch.sh: MindSpore cannot use GPUs: *' bash "$SCRIPTS/launch.sh" -n 2 --device_target GPU net.py
}

# bats test_tags=slow
@test "our trainer as a program, in MindOCR's words: it gets the target of the launch, and that is said" {
  local -r config=$PROJECT/configs/rec/crnn/crnn_resnet34_zh.yaml train=$PROJECT/tools/train.py
  local words
  for words in "$train --config $config -o a.b=1" "python $train -c $config" "python -u $train --config=$config"; do
    # shellcheck disable=SC2086 # words
    ends 0 '*note: the config has another device_target; -o system.device_target=CPU is added' \
      bash "$SCRIPTS/launch.sh" -n 2 --device_target CPU --dry_run $words
    [[ $output == *"$config"*system.device_target=CPU* ]] || fail "$output"
  done
  for words in "$config -o system.device_target=CPU" "$PROJECT/configs/mnist/lenet5_digits.yaml"; do
    # shellcheck disable=SC2086 # words
    ends 0 '' bash "$SCRIPTS/launch.sh" -n 2 --device_target CPU --dry_run "$train" --config $words
    [[ $(grep -c 'device_target=CPU' <<<"$output") -ne 1 ]] || fail "$output"
  done
}

@test "python and a file: the file is read as one that is named alone" {
  touch network.py
  refused 78 '*netwrk.py: no such file in *; did you mean network.py\?' bash "$SCRIPTS/launch.sh" -n 2 --device_target CPU python -u netwrk.py --lr 1
  printf 'import mindspore\nmindspore.set_context(device_target="GPU")\n' >net.py
  refused 78 '*net.py:2: the program itself asks for device_target "GPU", *' \
    bash "$SCRIPTS/launch.sh" -n 2 --device_target CPU python -u net.py
}

# bats test_tags=slow
@test "another trainer does not get the default config of a script, which is ours" {
  refused 78 '*has no file data_batch_1.bin; *CIFAR-10*' cpu run.sh --train_script "$PROJECT/tools/train.py" . 2
  gets "['program.py', '--lr', '1']" cpu run.sh --train_script program.py . 2 -- --lr 1
  gets "['program.py', '--config', 'config.yaml']" cpu run.sh --train_script program.py --config config.yaml . 2
}

@test "ranks that end at once without a word are told: a file of tests does nothing when Python runs it" {
  printf 'def test_one(): print("one")\n' >test_x.py
  ends 0 '*note: all ranks ended with 0 and printed nothing; *--pytest FILE*' cpu launch.sh -n 2 test_x.py
  printf 'import os\nif os.environ["RANK_ID"] == "1": print(1)\n' >one.py
  ends 0 '*' cpu launch.sh -n 2 one.py
  [[ $stderr != *'printed nothing'* ]] || fail "$stderr"
}

@test "the kind of a file decides: *.yaml with the run bit is a config" {
  chmod +x config.yaml
  ends 0 '# ascend2p.sh: 2 ranks*' printed ascend2p.sh --train_script program.py config.yaml
  [[ $output == *"# every rank runs the trainer program.py with the config config.yaml"* ]] || fail "$output"
  ends 0 '*' printed ascend2p.sh program.py config.yaml
  [[ $output == *"# every rank runs the program program.py with its own arguments"* ]] || fail "$output"
  ends 0 '*' printed ascend2p.sh -m package
  [[ $output == *"# every rank runs the module package"* ]] || fail "$output"
}

# printed WORD...: what --dry_run prints, also as messages for `ends`
printed() {
  cpu "$1" --dry_run "${@:2}" | tee /dev/stderr
}

# bats test_tags=thorough
@test "--pytest runs a file of tests, or one of them, in every rank" {
  export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 # what other packages add takes longer than the rest
  printf 'import os\ndef test_one(): print("one on", os.environ["RANK_ID"])\ndef test_two(): assert 0\n' >test_x.py
  ends 0 '*' cpu ascend2p.sh --pytest test_x.py::test_one
  grep -q 'one on 1' logs/latest/rank_1.log
  ends 1 '*' cpu launch.sh -n 1 --pytest test_x.py -- -k two
}

# bats test_tags=thorough
@test "what cannot be started is said in one line, and nothing is" {
  mkdir folder
  touch script.sh neither '[1,2]'
  printf 'binary?\n' >run
  chmod +x run
  while IFS='|' read -r code words message; do
    # shellcheck disable=SC2086 # several words
    refused_later "$code" "$message" cpu launch.sh -n 2 $words
  done <<'LIST'
78|none.py|launch.sh: none.py: no such file in *; correct the path
2|--log_dir program.py|launch.sh: PROGRAM or CONFIG is missing; --log_dir took program.py as its value; *
2|--log_dir program.py --lr 1|launch.sh: unknown option --lr; --log_dir took program.py as its value; *
2|--pytest program.py --lr 1|launch.sh: unknown option --lr; see*
78|folder|launch.sh: folder: is a folder; *
78|folder.py/x.py|launch.sh: folder.py/x.py: no such file in *
78|script.sh|launch.sh: script.sh is not executable; type: chmod +x script.sh, or start it as: bash script.sh
78|./run|launch.sh: ./run is executable, but is neither a binary nor begins with #!; start it as: bash ./run
78|-m nothing.at.all|launch.sh: -m nothing.at.all: * finds no such module; *
2|-m|launch.sh: -m needs a module: -m MODULE arguments
2|neither|launch.sh: neither: is this a config or a program? For a config: --config neither; for a program: python neither, *
2|--train_script program.py program.py|launch.sh: program.py is a program, and --train_script names another one*
2|--config config.yaml config.yaml|launch.sh: --config and the argument CONFIG name two configs*
2||launch.sh: PROGRAM or CONFIG is missing*
78|--pytest none.py::test_x|launch.sh: --pytest none.py: no such file in *
2|--devices 0,1,2 program.py|launch.sh: --devices "0,1,2" names 3, -n is 2; *
LIST
  printf '#!/bin/sh\n' >"ls"
  chmod +x ls
  refused_later 2 'launch.sh: ls is a file in this folder and a program on PATH; type ./ls or */ls' cpu launch.sh -n 2 ls
  refused_later 2 'launch.sh: -n is missing: how many ranks? Write it before the program or the config, such as: -n 2' cpu launch.sh program.py
  all_refused
}

@test "a program that imports MindSpore needs a Python that has it" {
  unset PYTHONPATH
  python -m venv --without-pip bare
  printf 'import mindspore\n' >needs.py
  PYTHON=$PWD/bare/bin/python refused 78 '*' bash "$SCRIPTS/launch.sh" -n 2 needs.py
  [[ $stderr == *MindSpore* || $stderr == *yaml* ]] || fail "$stderr"
}

# bats test_tags=thorough
@test "words of torchrun and msrun mean the same here, or are answered with ours" {
  gets "['program.py', '--nproc_per_node', '9']" cpu launch.sh --nproc_per_node=2 --nnodes 1 --node-rank 0 --master_addr 127.0.0.1 \
    --master_port 8118 --rdzv_backend c10d --standalone program.py --nproc_per_node 9
  [[ $stderr == *"note: --master_port is not needed: the launch takes a free port"* ]] || fail "$stderr"
  gets "['program.py']" cpu launch.sh --worker_num 2 --local_worker_num 2 --join True --cluster_time_out 77 --join program.py
  grep -q 'MS_TOPO_TIMEOUT=.77' logs/latest/rank_0.env
  rm -r logs train.log
  rm -f "${STUB_OUT:?}"/*
  while IFS='|' read -r script words message; do
    # shellcheck disable=SC2086 # several words
    refused_later 2 "$script: $message" cpu "$script" $words program.py
  done <<'LIST'
launch.sh|--nnodes 2|--nnodes 2: for this host alone, the value is --nnodes 1; several hosts: bash */scripts/run_msrun.sh *
launch.sh|--worker_num 16 --local_worker_num 8|--local_worker_num 8: another option says 16; several hosts: *
launch.sh|--cluster_time_out soon|--cluster_time_out soon is not a time: *
launch.sh|--nproc_per_node many|--nproc_per_node many is not a whole number *
ascend2p.sh|--nproc_per_node 4|--nproc_per_node 4: ascend2p.sh has no such option; any number of ranks: bash */scripts/launch.sh -n*
ascend2p.sh|--no_such 2|unknown option --no_such*
LIST
  all_refused
}
