# shellcheck shell=bash
# The functions that the file of an engine (lib/engines/) defines. It may leave out the two that have a default here.
#
#   engine::start      starts every rank of the plan with supervise::start, or announces it with supervise::expect
#   engine::print      for --dry_run: prints the same as shell commands
#   engine::scheduler  if MindSpore's scheduler runs on another host: prefixes its command with the one that gets there
#   engine::lost_host  LOG: searches the engine's LOG for a host that it has lost; the host, or nothing, in REPLY
#   engine::knows_hosts  whether another program knows which hosts are lost, such as Slurm, so that it is asked before a
#                      restart, whatever the engine's log says

engine::scheduler() { :; }
engine::lost_host() { REPLY=''; }
engine::knows_hosts() { return 1; }

# engine::bears_failures: whether the engine itself must let ranks go on when one fails: in what --dry_run prints. Agents hide
# a rank's failure from it, so that it still ends the job when an agent dies.
engine::bears_failures() {
  [[ -z ${LAUNCH_SECRET-} ]] && stopping::keeps_going
}
