# shellcheck shell=bash
# The page that --help prints: the script's header comment, its options and its exit codes. It works with bash 3.2,
# because doctor.sh runs there, too.

HELP_EXIT=$"0 if all ranks ended with 0; the code of the rank that failed first (128+N for signal N);
2 usage; 78 the launch was refused; 124 a time limit was reached; 128+N if signal N stopped the launcher."

# help::exit_codes TEXT: sets their text for a script that does not launch.
help::exit_codes() {
  HELP_EXIT=$1
}

# help::print TABLE: prints the script's header comment, then the options of the table and the exit codes.
help::print() {
  local line name takes meaning file=${LAUNCH_SCRIPT##*/}
  file=$LAUNCH_ROOT/hccl_tools/locale/zh/help/${file%.sh}.txt # tools/pages/messages.py makes it from the header
  [[ $LAUNCH_LANG == zh && -r $file ]] || file=$0
  while IFS= read -r line; do
    [[ $line == '#!'* ]] && continue
    [[ $line == '#'* ]] || break
    line=${line#\#}
    printf '%s\n' "${line# }"
  done <"$file"
  printf '\n%s\n' $"Options (hyphens and underscores are the same):"
  while read -r name takes meaning; do
    option_table::typed "$name"
    [[ $takes == - ]] || REPLY+=" $takes"
    printf '  %s\n      %s\n' "$REPLY" "$meaning"
  done < <(printf '%s\n' "$1")
  printf '\n%s\n' $"Exit: $HELP_EXIT"
}
