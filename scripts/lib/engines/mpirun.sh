# shellcheck shell=bash
# Engine "mpirun": Open MPI 4 or 5 starts the ranks, on this host or over ssh on several.

# shellcheck source=scripts/lib/engines/relay.sh
source "$LAUNCH_LIB/engines/relay.sh"

ENGINE_NAME=mpirun
# Variables that belong to a host, a login or an engine, so other hosts must not get them: a pattern.
ENGINE_OWN_VARIABLES='HOME|USER|LOGNAME|SHELL|MAIL|PWD|OLDPWD|SHLVL|_|TERM|HOSTNAME|DISPLAY|TMPDIR|LINES|COLUMNS|LS_COLORS'
readonly ENGINE_OWN_VARIABLES+='|@(SSH|XDG|DBUS|OMPI|PMIX|PRTE|SLURM|SLURMD|BASH|LAUNCH_KEPT_BASH)_*'

# Why each option is there; Open MPI's documentation says what it does:
#   --bind-to none     with one or two ranks per host, Open MPI would bind each rank to one core
#   -wdir, -x          without them, ranks on other hosts start in the home folder, with the environment of ssh's shell
#   --prefix           of a wheel: mpirun starts its programs on other hosts from this folder, which is on no PATH there
#   keepalive          mpirun notices in about 11 s, not in eight minutes, that a host's network is cut off. A host that
#                      is only busy is not given up, because its kernel answers
#   routed_radix       connects mpirun to every host directly. By default it connects to 64 hosts, and these connect to
#                      the others; then mpirun never learns that a host behind another one is lost
#   num_concurrent     how many ssh begin at a time. Each one stays, so with fewer (the default is 128) than hosts, mpirun
#                      would wait for ever
engine::command() {
  local name variable mca=-mca mine=OMPI_MCA exit_is_failure=orte_abort_on_non_zero_status abort=1 plm=plm_rsh
  local -a where=()
  local -A hosts=()
  ! engine::bears_failures || abort=0
  if ((${PLAN_ENGINE[version]%%.*} >= 5)); then # its run time, PRRTE, has names of its own
    mca=--prtemca mine=PRTE_MCA exit_is_failure=state_base_error_non_zero_exit plm=plm_ssh
  fi
  if [[ -n ${PLAN_ENGINE[hostfile]-} ]]; then
    where=(--hostfile "${PLAN_ENGINE[hostfile]}")
  else
    where=(-H "${PLAN_ENGINE[hosts]}")
  fi
  ENGINE_COMMAND=(mpirun)
  system::user_id
  [[ $REPLY != 0 ]] || ENGINE_COMMAND+=(--allow-run-as-root)
  ENGINE_COMMAND+=(-n "${PLAN_ENGINE[ranks]}" "${where[@]}")
  mpirun_words::given map_by || ENGINE_COMMAND+=(--map-by "${PLAN_ENGINE[map]-slot}")
  mpirun_words::binds || ENGINE_COMMAND+=(--bind-to none)
  ENGINE_COMMAND+=(-wdir "$PWD" "$mca" "$exit_is_failure" "$abort")
  for name in ${PLAN_HOSTS[@]+"${PLAN_HOSTS[@]}"}; do
    hosts[$name]=1
  done
  [[ -z ${PLAN_ENGINE[prefix]-} ]] || mpirun_words::given prefix || ENGINE_COMMAND+=(--prefix "${PLAN_ENGINE[prefix]}")
  ((${#hosts[@]} < 2)) || ENGINE_COMMAND+=("$mca" routed_radix "${#hosts[@]}" "$mca" "${plm}_num_concurrent" "${#hosts[@]}")
  for name in time=5 intvl=2 probes=3; do
    variable=${mine}_oob_tcp_keepalive_${name%=*} # what the user has set counts
    [[ -n ${!variable-} ]] || mpirun_words::given "oob_tcp_keepalive_${name%=*}" || ENGINE_COMMAND+=("$mca" "oob_tcp_keepalive_${name%=*}" "${name#*=}")
  done
  if [[ -n ${PLAN_ENGINE[ssh]-} ]]; then
    ENGINE_COMMAND+=("$mca" "${plm}_agent" "${PLAN_ENGINE[ssh]}")
  fi
  if [[ -n ${PLAN_ENGINE[network]-} ]]; then
    mpirun_words::given oob_tcp_if_include || ENGINE_COMMAND+=("$mca" oob_tcp_if_include "${PLAN_ENGINE[network]}")
    mpirun_words::given btl_tcp_if_include || ENGINE_COMMAND+=(-mca btl_tcp_if_include "${PLAN_ENGINE[network]}")
  fi
  while IFS= read -r name; do
    [[ $name == @($ENGINE_OWN_VARIABLES) && -z ${MPIRUN_WORDS_EXPORT[$name]-} ]] || ENGINE_COMMAND+=(-x "$name")
  done < <(compgen -e)
  ENGINE_COMMAND+=(${MPIRUN_WORDS_PASSED[@]+"${MPIRUN_WORDS_PASSED[@]}"} bash "$LAUNCH_LIB/rank_agent.sh")
}

# engine::cancelled: mpirun, not the launcher, told an agent to end, for example because it lost a host. From now on the
# ranks' ends are not failures of their own, so REPLY is empty: the supervisor gets no event. mpirun ends by itself.
engine::cancelled() {
  REPLY=''
}

# engine::lost_host LOG: the host that mpirun lost, in REPLY, from a message of mpirun or of ssh. If mpirun first sees
# that ssh has ended, it reports only that a daemon could not be started; then ssh's message names the host, or Open
# MPI 5, with the status of an ssh that has lost its connection (255) or was killed (0).
engine::lost_host() {
  local line remote=''
  REPLY=''
  while IFS= read -r line; do
    case $line in
      *'Remote daemon:'*' on node '*) REPLY=${line##* on node } && return 0 ;;
      *'Remote host: '*) remote=${line##* } ;;
      *'Daemon exit status: 0' | *'Daemon exit status: 255') REPLY=${REPLY:-$remote} ;;
      'Connection to '*' closed by remote host.') REPLY=${line#Connection to } && REPLY=${REPLY%% *} ;;
      'Timeout, server '*' not responding.') REPLY=${line#Timeout, server } && REPLY=${REPLY%% *} ;;
    esac
  done < <(tr -d '\r' 2>/dev/null <"$1") # tr may fail: the loop above can return before the end of the log
}
