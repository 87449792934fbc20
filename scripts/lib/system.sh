# shellcheck shell=bash
# Checks what every launch needs: Linux, bash 4.2 or later, and open streams. This file works with bash 3.2.

SYSTEM_MACHINE=${BASH_VERSINFO[5]} # such as x86_64-pc-linux-gnu; OSTYPE is what the caller exported

# system::problem: what is wrong with the operating system, in REPLY; empty on Linux.
system::problem() {
  REPLY=''
  [[ $SYSTEM_MACHINE == *-linux* ]] || REPLY=$"${SYSTEM_MACHINE/*-darwin*/macOS}; Linux is needed"
}

# system::bash_problem: what is wrong with this bash, in REPLY; empty if it can launch.
system::bash_problem() {
  case $BASH_VERSION in
    [1-3].* | 4.[01].*) REPLY=$"$BASH_VERSION; 4.2 or later is needed" ;;
    *) REPLY='' ;;
  esac
}

# system::require: ends the script on a machine that cannot launch.
system::require() {
  system::problem
  [[ -z $REPLY ]] || log::die 78 $"this is $REPLY: use another machine, a virtual one or a container"
  system::bash_problem
  [[ -z $REPLY ]] || log::die 78 $"this is bash $REPLY"
}

# system::user_id: the number of the user whose rights this process has, in REPLY. The kernel knows it: bash takes EUID from
# the environment, and a program `id` may be another one.
system::user_id() {
  local key
  while read -r key _ REPLY _; do
    [[ $key != Uid: ]] || break
  done <"/proc/$$/status"
}

# system::umask: the umask of this process, in REPLY; without a new process where the kernel is 4.7 or later.
system::umask() {
  local key
  while read -r key REPLY _; do
    [[ $key != Umask: ]] || return 0
  done <"/proc/$BASHPID/status"
  REPLY=$(umask)
}

# system::open_streams: /dev/null for stdin, stdout and stderr where the caller has closed them. Bash would give their
# numbers to its pipes, and with few open files allowed it would then close these pipes.
system::open_streams() {
  [[ -e /dev/fd/0 ]] || exec </dev/null
  [[ -e /dev/fd/1 ]] || exec >/dev/null
  [[ -e /dev/fd/2 ]] || exec 2>/dev/null
}

# system::can_open NUMBER TEXT: whether this process may have so many files open. If not, says TEXT, and why.
system::can_open() {
  local -r most=$(ulimit -n)
  [[ $most != unlimited ]] && (($1 > most)) || return 0
  log::say $"$2: $1 files must be open, and ulimit -n is $most; type: ulimit -n $1"
  return 1
}
