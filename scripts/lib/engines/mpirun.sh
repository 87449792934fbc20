# shellcheck shell=bash
# Engine "mpirun": Open MPI 4 or 5 starts the ranks, on this host or over ssh on several.

# shellcheck source=scripts/lib/engines/relay.sh
source "$LAUNCH_LIB/engines/relay.sh"

ENGINE_NAME=mpirun
# Names of variables that belong to a host, a login or an engine, not to a job; with a * at its end: all
# that begin so.
readonly ENGINE_OWN_VARIABLES='HOME USER LOGNAME SHELL MAIL PWD OLDPWD SHLVL _ TERM HOSTNAME DISPLAY TMPDIR LINES
COLUMNS LS_COLORS SSH_* XDG_* DBUS_* OMPI_* PMIX_* PRTE_* SLURM_* SLURMD_* BASH_*'

# Beside what its documentation says about each option:
#   --bind-to none     with few ranks a host Open MPI would bind each to one core
#   -wdir, -x          ranks of other hosts would start in the home folder, with what ssh's shell has
#   keepalive          a host whose network is cut off is noticed in about 11 s, not in eight minutes; the
#                      kernel there answers, so that a host which is only busy is not given up
#   routed_radix       mpirun hears from every host itself. It would have 64 of them, and those the others:
#                      of one that is lost behind another one it never learns
engine::command() {
  local name variable mca=-mca prefix=orte
  local -a where=()
  local -A hosts=()
  if ((${PLAN_ENGINE[version]%%.*} >= 5)); then
    mca=--prtemca prefix=prte
  fi
  if [[ -n ${PLAN_ENGINE[hostfile]-} ]]; then
    where=(--hostfile "${PLAN_ENGINE[hostfile]}")
  else
    where=(-H "${PLAN_ENGINE[hosts]}")
  fi
  ENGINE_COMMAND=(mpirun)
  ((EUID != 0)) || ENGINE_COMMAND+=(--allow-run-as-root)
  ENGINE_COMMAND+=(-n "${PLAN_ENGINE[ranks]}" "${where[@]}" --map-by slot --bind-to none -wdir "$PWD"
    "$mca" "${prefix}_abort_on_non_zero_status" 1)
  for name in ${PLAN_HOSTS[@]+"${PLAN_HOSTS[@]}"}; do
    hosts[$name]=1
  done
  ((${#hosts[@]} < 2)) || ENGINE_COMMAND+=("$mca" routed_radix "${#hosts[@]}")
  for name in time=5 intvl=2 probes=3; do
    variable=OMPI_MCA_oob_tcp_keepalive_${name%=*} # what the user has set counts
    [[ -n ${!variable-} ]] || ENGINE_COMMAND+=("$mca" "oob_tcp_keepalive_${name%=*}" "${name#*=}")
  done
  if [[ -n ${PLAN_ENGINE[ssh]-} ]]; then
    [[ $prefix == orte ]] && name=plm_rsh_agent || name=plm_ssh_agent
    ENGINE_COMMAND+=("$mca" "$name" "${PLAN_ENGINE[ssh]}")
  fi
  if [[ -n ${PLAN_ENGINE[network]-} ]]; then
    ENGINE_COMMAND+=("$mca" oob_tcp_if_include "${PLAN_ENGINE[network]}" -mca btl_tcp_if_include "${PLAN_ENGINE[network]}")
  fi
  while IFS= read -r name; do
    [[ $name == @(${ENGINE_OWN_VARIABLES//[[:space:]]/|}) ]] || ENGINE_COMMAND+=(-x "$name")
  done < <(compgen -e)
  ENGINE_COMMAND+=(bash "$LAUNCH_LIB/rank_agent.sh")
}

# mpirun hands these signals on to every rank's process group, where the agent is alone; SIGURG does
# nothing to a program that does not ask for it.
engine::order() {
  local signal=$1
  [[ $1 != stop ]] || signal=URG
  [[ $1 != stacks ]] || signal=ABRT
  kill -s "$signal" "$2" 2>/dev/null
}

# engine::cancelled: an agent was told to end, and not by us: mpirun has a reason of its own, such as a lost host. How
# the ranks end from now on is no failure of theirs, so the supervisor has nothing to hear. In REPLY.
engine::cancelled() {
  REPLY=''
}

# engine::lost_host LOG: the host that mpirun could not go on without, in REPLY: by its own words, or by those
# of ssh, whose end it takes for a daemon that cannot be started when it sees that first.
engine::lost_host() {
  local line
  REPLY=''
  while IFS= read -r line; do
    case $line in
      *'Remote daemon:'*' on node '*) REPLY=${line##* on node } && return 0 ;;
      'Connection to '*' closed by remote host.') REPLY=${line#Connection to } && REPLY=${REPLY%% *} ;;
      'Timeout, server '*' not responding.') REPLY=${line#Timeout, server } && REPLY=${REPLY%% *} ;;
    esac
  done < <(tr -d '\r' <"$1" 2>/dev/null) # which may not get to its end
}
