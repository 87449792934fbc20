# shellcheck shell=bash
# What the file of an engine (lib/engines/) defines, and what it may leave out.
#
#   engine::start      starts every rank of the plan by supervise::start, or tells of them by supervise::expect
#   engine::print      for --dry_run: the same as lines for a shell
#   engine::scheduler  puts what reaches another host before the command of MindSpore's scheduler, where it has to
#   engine::lost_host  LOG: the host that the engine has lost, by what it wrote to its LOG, in REPLY; or nothing

engine::scheduler() { :; }
engine::lost_host() { REPLY=''; }
