#!/usr/bin/env bash
# Test hosts on this one machine: network namespaces with addresses, host names and an sshd of their own.
#
# Usage:
#   LAB=$(tests/lab/lab.sh up N [OWNER])   builds N hosts, node0, node1 ...; prints the lab's folder
#   export LAB
#   tests/lab/lab.sh run HOST COMMAND...   runs COMMAND on a host, 0 is the first, in this folder
#   tests/lab/lab.sh root HOST COMMAND...  the same as root of the host, to mount something say
#   tests/lab/lab.sh link HOST down|up     pulls the network cable of a host, or puts it back
#   tests/lab/lab.sh off HOST              switches a host off
#   tests/lab/lab.sh down                  ends everything that runs there and removes the folder
#   tests/lab/lab.sh shell [N]             for a person: a shell on host 0 of N (2) new hosts
#   tests/lab/lab.sh probe                 exit 0 where a lab is possible, else 1 and the reason
#
# Host I is nodeI, 10.77.0.(I+1), with /etc/hosts, /etc/hccn.conf and a simulated hccn_tool of its own;
# its eight cards are described in $LAB/hostI/cards (see tests/fixtures/bin/hccn_tool). `ssh nodeI` and
# mpirun work from host to host without further options, by keys that are thrown away with the lab.
# /tmp, $HOME and this project are shared by the hosts, as by NFS; `root I mount -t tmpfs tmpfs DIR`
# takes one away from a host.
#
# A lab goes when process OWNER goes, by SIGKILL too; it is the one that called `up` if none is named. Several at once do not meet:
# the addresses exist only inside. Nothing of the user's is read or changed: not ~/.ssh, not ~/.bashrc, not /etc.
# Works for root, and for others where the kernel lets them make user namespaces.
set -euo pipefail
here=$(readlink -f -- "${BASH_SOURCE[0]}")
readonly here
readonly FIXTURES=${here%/lab/*}/fixtures
readonly CARDS=8
# By these Open MPI 4 and 5 leave what they leave when they are killed in a folder of the host, which goes with it.  mpirun
# hands its own value to the other hosts, so the name is one for all.  Process ids of hosts are alike, and Open MPI 5 fails
# where another's folder is.
readonly OPEN_MPI_FOLDERS=(OMPI_MCA_orte_tmpdir_base=/run/open_mpi PRTE_MCA_prte_tmpdir_base=/run/open_mpi)
# Programs of administrators, such as sshd, lie beside the others.
[[ :$PATH: == */sbin:* ]] || PATH+=:${PATH//\/bin/\/sbin}
export LAB_UID=${LAB_UID-$EUID} LAB_GID=${LAB_GID-$(id -g)} # the caller's, also inside of its user namespace

main() {
  local -r command=${1-}
  [[ $OSTYPE == linux* ]] || lab::die "this is ${OSTYPE/#darwin*/macOS}; hosts in namespaces need Linux"
  (($# == 0)) || shift
  case $command in
    up) lab::up "${1-}" "${2-$PPID}" ;;
    run) lab::run lab::as_caller "$@" ;;
    root) lab::run exec "$@" ;;
    link) lab::link "$@" ;;
    off) lab::off "$@" ;;
    down) lab::down ;;
    shell) lab::shell "${1-2}" ;;
    probe) lab::probe ;;
    __keep | __inside | __host | __in) "lab::$command" "$@" ;;
    *) lab::die "usage: lab.sh up N [OWNER] | run|root HOST COMMAND... | link HOST down|up | off HOST | down | shell [N] | probe" ;;
  esac
}

lab::die() {
  printf 'lab.sh: %s\n' "$*" >&2
  exit 1
}

# lab::folder: the lab that LAB names.
lab::folder() {
  [[ -n ${LAB-} && -e $LAB/keeper ]] || lab::die "LAB=${LAB-} is no lab; make one: export LAB=\$(tests/lab/lab.sh up 2)"
}

# lab::host HOST: the process in whose namespaces the host is, in REPLY.
lab::host() {
  lab::folder
  [[ ${1-} =~ ^[0-9]+$ && -e $LAB/host$1/pid ]] || lab::die "no host ${1-} in $LAB"
  REPLY=$(<"$LAB/host$1/pid")
}

# Whoever is not root becomes root of a user namespace to build the lab.
lab::unshare() {
  local -a as_root=()
  ((EUID == 0)) || as_root=(--user --map-root-user)
  exec unshare ${as_root[@]+"${as_root[@]}"} --mount --net --pid --ipc --uts --fork --kill-child=KILL \
    --propagation private "$@"
}

# lab::enter PID FLAG... -- COMMAND...: in the namespaces of PID.
lab::enter() {
  local -r pid=$1
  local -a flags=()
  shift
  while [[ $1 != -- ]]; do
    flags+=("$1")
    shift
  done
  shift
  ((EUID == 0)) || flags+=(--user --preserve-credentials)
  nsenter --target "$pid" "${flags[@]}" -- "$@"
}

# ---- up and down -----------------------------------------------------------------------------------

# lab::up N OWNER: prints the folder of a lab that lives until OWNER ends.
lab::up() {
  local lab answer='' program ready
  [[ $1 =~ ^([1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|250)$ ]] || lab::die "up takes a number of hosts from 1 to 250"
  for program in unshare nsenter setpriv setsid ip ssh ssh-keygen sshd; do
    type -P "$program" >/dev/null || lab::die "needs $program"
  done
  lab=$(mktemp -d "${TMPDIR:-/tmp}/lab.XXXXXX")
  ssh-keygen -q -t ed25519 -N '' -C lab -f "$lab/host_key"
  ssh-keygen -q -t ed25519 -N '' -C lab -f "$lab/user_key"
  # The pipe ends when the keeper gives up: no answer is a no.
  exec {ready}< <(setsid bash "$here" __keep "$lab" "$1" "$2" 2>"$lab/log" 3>&- </dev/null)
  read -r answer <&"$ready" || :
  if [[ $answer != up ]]; then
    kill -KILL "$(<"$lab/keeper")" 2>/dev/null || :
    printf 'lab.sh: no lab: %s\n' "$(tail -n 3 "$lab/log")" >&2
    rm -rf --one-file-system -- "$lab"
    exit 1
  fi
  printf '%s\n' "$lab"
}

# The keeper stands outside. It holds the lab by pdeathsig: the keeper's end, whatever it is, is
# SIGKILL for `unshare`, that one's end is SIGKILL for the first process inside, and with that one the
# kernel ends all of the lab's processes and takes its namespaces, mounts and links away.
lab::__keep() {
  local -r lab=$1 hosts=$2 owner=$3
  local inside
  printf '%d\n' "$$" >"$lab/keeper"
  trap : TERM # of `down`: ends the wait
  LAB=$lab setpriv --pdeathsig KILL bash "$here" __inside "$hosts" &
  inside=$!
  exec >/dev/null
  setpriv --pdeathsig KILL tail --pid="$owner" -f /dev/null &
  wait "$!" || :
  kill -KILL "$!" "$(cat "$lab/inside" || echo "$inside")" 2>/dev/null || :
  wait "$inside" 2>/dev/null || :
  rm -rf --one-file-system -- "$lab"
}

# The keeper does it; when the folder is gone all is. One that was killed took its lab along.
lab::down() {
  lab::folder
  if readlink "/proc/$(<"$LAB/keeper")/exe" >/dev/null; then # a zombie has none
    kill -TERM "$(<"$LAB/keeper")"
    while [[ -e $LAB ]]; do sleep 0.01; done
  else
    rm -rf --one-file-system -- "$LAB"
  fi
}

lab::shell() {
  LAB=$(lab::up "$1" "$$")
  export LAB
  printf '%s hosts: node0 is this one; ssh node1, mpirun -H node0,node1 hostname; exit ends them all. LAB=%s\n' "$1" "$LAB" >&2
  "$here" run 0 bash -i || : # the code of its last command is no failure of ours
  "$here" down
}

lab::probe() {
  LAB=$(lab::up 1 "$$")
  lab::down
}

# ---- inside ----------------------------------------------------------------------------------------

# The first process inside: a switch with a cable to every host. Hosts say when they are up by a line.
lab::__inside() {
  [[ ${2-} == built ]] || lab::unshare bash "$here" __inside "$1" built
  local i line up=0 _
  # /proc still is the machine's: it tells our number outside.
  read -r LAB_INSIDE _ </proc/self/stat
  export LAB_INSIDE
  printf '%d\n' "$LAB_INSIDE" >"$LAB/inside"
  ip link set lo up
  ip link add switch type bridge
  ip link set switch up
  exec {ready}<> <(:)
  for ((i = 0; i < $1; i++)); do
    lab::files "$i" "$1"
    bash "$here" __host "$i" >&"$ready" &
  done
  while ((up < $1)); do
    read -r -t 60 -u "$ready" line || { printf 'only %d of %d hosts came up\n' "$up" "$1" >&2 && exit 1; }
    [[ $line == up ]] || { printf '%s\n' "$line" >&2 && exit 1; }
    up=$((up + 1))
  done
  printf 'up\n'
  exec >/dev/null
  lab::forever
}

# lab::files HOST HOSTS: the folder of a host: its own /etc, its programs, its cards.
lab::files() {
  local -r host=$LAB/host$1
  local i
  mkdir -p "$host/etc/ssh" "$host/bin" "$host/cards"
  cp "$LAB/user_key.pub" "$host/authorized_keys"
  printf 'node%d\n' "$1" >"$host/etc/hostname"
  printf '127.0.0.1 localhost\n' >"$host/etc/hosts"
  : >"$host/known_hosts"
  for ((i = 0; i < $2; i++)); do
    printf '10.77.0.%d node%d\n' "$((i + 1))" "$i" >>"$host/etc/hosts"
    printf 'node%d,10.77.0.%d %s\n' "$i" "$((i + 1))" "$(<"$LAB/host_key.pub")" >>"$host/known_hosts"
  done
  for ((i = 0; i < CARDS; i++)); do
    printf 'address_%d=10.78.%d.%d\nnetmask_%d=255.255.0.0\n' "$i" "$1" "$((i + 1))" "$i"
  done | tee "$host/etc/hccn.conf" >"$host/cards/hccn.conf"
  # What OpenSSH prefers as its key exchange costs 0.08 s of processor time a connection; this one 0.01 s.
  printf '%s\n' 'Host *' "  IdentityFile $LAB/user_key" '  IdentitiesOnly yes' "  UserKnownHostsFile $host/known_hosts" \
    '  KexAlgorithms curve25519-sha256' >"$host/etc/ssh/ssh_config"
  printf '%s\n' 'Port 22' "HostKey $LAB/host_key" "AuthorizedKeysFile $host/authorized_keys" 'PidFile /run/sshd.pid' \
    'UsePAM no' 'StrictModes no' 'PasswordAuthentication no' 'KbdInteractiveAuthentication no' \
    "SetEnv ${OPEN_MPI_FOLDERS[*]}" >"$host/sshd_config"
  printf '%s\n' '#!/usr/bin/env bash' "HCCN_SIM=$host/cards exec $FIXTURES/bin/hccn_tool \"\$@\"" >"$host/bin/hccn_tool"
  chmod +x "$host/bin/hccn_tool"
}

# The first process of a host. It never ends by itself: the end is a failure, and its reason is told.
lab::__host() {
  [[ ${2-} == built ]] || lab::unshare bash "$here" __host "$1" built
  local -r host=$LAB/host$1
  local pid tries _
  exec {READY}>&1 >"$host/log" 2>&1
  HOST_LOG=$host/log # not local: the trap runs when the function has gone
  trap 'printf "%s: %s\n" "$HOST_LOG" "$(tail -n 1 "$HOST_LOG")" >&"$READY"' EXIT
  read -r pid _ </proc/self/stat
  hostname "node$1"
  ip link add eth0 type veth peer name "cable$1" netns "/proc/$LAB_INSIDE/ns/net"
  nsenter --target "$LAB_INSIDE" --net -- ip link set "cable$1" master switch up
  ip address add "10.77.0.$(($1 + 1))/24" dev eth0
  ip link set eth0 up
  ip link set lo up
  mount -t proc proc /proc
  lab::mounts "$host"
  printf '0\n' >/proc/sys/net/ipv4/ip_unprivileged_port_start
  printf '60000-60031\n' >/proc/sys/net/ipv4/ip_local_reserved_ports # HCCL's, as doctor.sh advises
  (lab::as_caller "$(type -P sshd)" -f "$host/sshd_config" -E "$host/log")
  for ((tries = 0; tries < 500; tries++)); do # it writes the file when it listens
    [[ ! -e /run/sshd.pid ]] || break
    sleep 0.01
  done
  [[ -e /run/sshd.pid ]]
  printf '%d\n' "$pid" >"$host/pid"
  printf 'up\n' >&"$READY"
  exec {READY}>&-
  lab::forever
}

# What this host has for itself. The files in $host/etc and $host/bin lie over the machine's.
lab::mounts() {
  local -r home=$(getent passwd "$LAB_UID" | cut -d: -f6)
  local options=''
  ((LAB_UID == 0)) || options=,userxattr
  mount -t tmpfs tmpfs /run
  mount -t tmpfs tmpfs /dev/shm
  mkdir --mode=1777 /run/launch-locks /run/open_mpi
  mkdir /run/sshd /run/lab /run/lab/work # the upper folder must be on a tmpfs: /tmp may be an overlay itself
  cp -r "$1/etc" "$1/bin" /run/lab
  mount -t overlay -o "lowerdir=/etc,upperdir=/run/lab/etc,workdir=/run/lab/work$options" overlay /etc
  mount -t overlay -o "lowerdir=/run/lab/bin:/usr/local/bin$options" overlay /usr/local/bin
  [[ ! -d $home/.ssh ]] || mount -t tmpfs tmpfs "$home/.ssh"
  [[ ! -f $home/.bashrc ]] || mount --bind /dev/null "$home/.bashrc" # ssh's bash reads it, and some take seconds
}

# lab::as_caller COMMAND...: not as root of the user namespace, which sshd and mpirun would mistake for root.
lab::as_caller() {
  if ((LAB_UID == 0)); then
    exec "$@"
  else
    exec unshare --user --map-user="$LAB_UID" --map-group="$LAB_GID" -- "$@"
  fi
}

# The first process of a pid namespace collects what its children leave behind; bash does so while it waits.
lab::forever() {
  while :; do
    sleep 86400 &
    wait "$!" || :
  done
}

# ---- using it --------------------------------------------------------------------------------------

# lab::run lab::as_caller|exec HOST COMMAND...
lab::run() {
  (($# >= 3)) || lab::die 'usage: lab.sh run HOST COMMAND...'
  lab::host "$2"
  # The folder is looked up inside: a host may have another one mounted there.
  lab::enter "$REPLY" --mount --net --pid --ipc --uts -- bash "$here" __in "$PWD" "$1" "${@:3}"
}

lab::__in() {
  export LAUNCH_LOCKS=/run/launch-locks # /tmp, where they are by default, is one for all hosts
  export "${OPEN_MPI_FOLDERS[@]}"
  cd -- "$1"
  shift
  "$@"
}

lab::link() {
  [[ ${2-} == down || ${2-} == up ]] || lab::die 'usage: lab.sh link HOST down|up'
  lab::host "$1"
  lab::enter "$(<"$LAB/inside")" --net -- ip link set "cable$1" "$2"
}

lab::off() {
  lab::host "${1-}"
  kill -KILL "$REPLY"
}

main "$@"
