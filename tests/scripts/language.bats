#!/usr/bin/env bats
# The scripts speak Chinese to those whose locale is Chinese, and to those who ask for it.

load ../helper

setup() {
  setup_world
  unset LC_ALL LC_MESSAGES LANGUAGE LAUNCH_LANG
  export LANG=C.UTF-8
}

# A folder of the tests has Chinese in its name, so not every Chinese character counts.
chinese() { [[ $stderr == *'帮助：'* ]] || fail "not Chinese: $stderr"; }
english() { [[ $stderr == *'; see: '* ]] || fail "not English: $stderr"; }

# says_in LANGUAGE COMMAND...: what a script says of a mistake
says_in() {
  ends 2 '*--help' "${@:2}" bash "$SCRIPTS/ascend2p.sh" --no_such_option
  "$1"
}

# bats test_tags=slow
@test "a refusal is in the language of the locale, or in that of LANGUAGE" {
  says_in english
  [[ $stderr == "ascend2p.sh: unknown option --no_such_option; see: bash $SCRIPTS/ascend2p.sh --help" ]]
  says_in chinese env LANG=zh_CN.UTF-8
  [[ $stderr == "ascend2p.sh: 未知选项 --no_such_option；帮助：bash $SCRIPTS/ascend2p.sh --help" ]]
  says_in chinese env LC_ALL=zh_CN.UTF-8
  says_in chinese env LANG=en_US.UTF-8 LANGUAGE=zh_CN:en
  says_in english env LANG=zh_CN.UTF-8 LC_ALL=C
}

# bats test_tags=slow
@test "--lang comes before LAUNCH_LANG, and that before the locale" {
  says_in chinese env LAUNCH_LANG=zh
  says_in chinese env LAUNCH_LANG=zh LANGUAGE=en
  says_in english env LAUNCH_LANG=en LANG=zh_CN.UTF-8
  ends 2 '*' bash "$SCRIPTS/ascend2p.sh" --no_such_option --lang zh
  chinese
  ends 2 '*' env LAUNCH_LANG=zh bash "$SCRIPTS/ascend2p.sh" --lang=en --no_such_option
  english
  ends 2 '*: --lang fr: write one of zh, en; see: *' bash "$SCRIPTS/ascend2p.sh" --lang fr config.yaml
}

# bats test_tags=slow
@test "--help is Chinese, with the same options and examples" {
  ends 0 '' bash "$SCRIPTS/ascend2p.sh" --help
  [[ $output == 'Trains with 2 ranks'* ]]
  local -r options=$(grep -oE '^  +(bash|-).*' <<<"$output")
  ends 0 '' bash "$SCRIPTS/ascend2p.sh" --lang zh --help
  [[ $output == $'在本机的 0、1 号设备上用 2 个 rank 训练，每个设备一个。\n\n用法： bash '"$SCRIPTS"$'/ascend2p.sh '* ]]
  diff <(grep -oE '^  +(bash|-).*' <<<"$output") <(printf '%s\n' "$options")
}

# bats test_tags=slow
@test "the report of a failure is Chinese, its columns under their heads" {
  export STUB_DO='0: wait; 1: await 0, exit 7'
  ends 7 '*' launch ascend2p.sh --lang zh config.yaml
  [[ $stderr == *'ascend2p.sh: rank 1（设备 1） 运行 '*' 秒后以退出码 7 结束；正在停止另一个 rank'* ]]
  [[ $stderr == *'rank  设备    结束                         时间      日志'* ]]
  [[ $stderr == *'1     1       7，最先失败                  '* ]]
  [[ $stderr == *'ascend2p.sh: 退出码 7；日志和 launch.json 在 logs/'* ]]
}

@test "the dry run is Chinese, and can still be pasted" {
  ends 0 '*' bash "$SCRIPTS/launch.sh" --lang zh --dry_run --device_target CPU -n 2 -- "$(type -P python)" -c pass
  [[ $output == '# launch.sh：2 个 rank；将要启动的内容如下'* ]] || fail "$output"
  [[ $output == *'每个 rank 运行'* ]] || fail "$output"
  bash -n <<<"$output"
}

# bats test_tags=slow
@test "ranks get the caller's own locale" {
  LANG=zh_CN.UTF-8 LC_ALL=zh_CN.UTF-8 LANGUAGE=en:zh launch ascend2p.sh --lang zh config.yaml
  [[ "$(recorded rank_0 'r["env"]["LANGUAGE"]')" = en:zh ]]
  [[ "$(recorded rank_0 'r["env"]["LC_ALL"]')" = zh_CN.UTF-8 ]]
  [[ "$(recorded rank_0 'r["env"]["LANG"]')" = zh_CN.UTF-8 ]]
  launch ascend2p.sh config.yaml
  [[ "$(recorded rank_0 '"LAUNCH_LANG" in r["env"], "LC_ALL" in r["env"]')" = '(False, False)' ]]
}

# bats test_tags=slow
@test "the program's --lang is the program's" {
  ends 0 '*' bash "$SCRIPTS/launch.sh" --dry_run --device_target CPU -n 1 -- "$(type -P python)" -c pass --lang fr
  [[ $output == '# launch.sh: 1 rank; '* ]]
  [[ $output == *'-c pass --lang fr'* ]]
  ends 2 '* is not a number *' bash "$SCRIPTS/launch.sh" --device_target CPU --n 0x train.py --lang zh
  ends 2 '* 不是 *' bash "$SCRIPTS/launch.sh" --train_script train.py --lang zh --n 0x
}

# bats test_tags=slow
@test "the caller's TEXTDOMAIN translates nothing of ours, and reaches the ranks" {
  mkdir -p locale/zh/LC_MESSAGES
  python -c 'import polib
catalogue = polib.POFile()
catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
catalogue.append(polib.POEntry(msgid="unknown option {option}{instead}", msgstr="foreign"))
for domain in ("foreign", "launch"):
    catalogue.save_as_mofile(f"locale/zh/LC_MESSAGES/{domain}.mo")'
  export TEXTDOMAIN=foreign TEXTDOMAINDIR=$PWD/locale LANGUAGE=zh
  says_in chinese
  says_in english env LAUNCH_LANG=en
  launch ascend2p.sh config.yaml
  [[ "$(recorded rank_0 'r["env"]["TEXTDOMAIN"]')" = foreign ]]
}
