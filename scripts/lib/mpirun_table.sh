# shellcheck shell=bash
# Options of mpirun, and what each means to a launch; mpirun_words.sh reads them.

# Name, number of values, then what it means here:
#   = OPTION   the same as our OPTION
#   ~ OPTION   the same as mpirun's OPTION
#   .          the launch does so anyway, or needs it for nothing
#   , TEXT     it is not needed, because of TEXT, which the user may want to know
#   > -        passed to mpirun
#   : WAY      it depends on the value, see mpirun_words::_depends
#   no TEXT    refused, because of TEXT
readonly MPIRUN_TABLE='np 1 = n
c 1 = n
N 1 : each
npernode 1 : each
H 1 : hosts
host 1 : hosts
hostfile 1 : hosts
machinefile 1 : hosts
default_hostfile 1 : hosts
x 1 : variable
mca 2 : parameter
gmca 2 : parameter
omca 2 : parameter
prtemca 2 : parameter
gprtemca 2 : parameter
pmixmca 2 : parameter
gpmixmca 2 : parameter
bind_to 1 : once
prefix 1 : once
map_by 1 : order
rank_by 1 : order
wdir 1 : folder
wd 1 : folder
stdin 1 : input
output_filename 1 = output_filename
timeout 1 = timeout
q 0 = quiet
allow_run_as_root 0 .
merge_stderr_to_stdout 0 .
oversubscribe 0 .
nooversubscribe 0 .
byslot 0 .
bind_to_none 0 .
disable_recovery 0 .
tag_output 0 , '$"each rank has a log of its own; --console all shows the numbers of the ranks"'
timestamp_output 0 , '$"each rank has a log of its own; --console all shows the numbers of the ranks"'
report_bindings 0 >
display_map 0 >
display_allocation 0 >
display_devel_map 0 >
display_topo 0 >
display 1 >
v 0 >
verbose 0 >
d 0 >
debug_devel 0 >
debug_daemons 0 >
leave_session_attached 0 >
cpus_per_proc 1 >
cpus_per_rank 1 >
cpu_set 1 >
cpu_list 1 >
use_hwthread_cpus 0 >
noprefix 0 >
am 1 >
tune 1 >
output 1 no '$"every rank writes a log of its own; write --output_filename DIR, or --console all"'
set_cwd_to_session_dir 0 no '$"ranks run in the folder where you type the command; change to another one by cd"'
preload_binary 0 no '$"the program must be at the same path on all hosts"'
preload_files 1 no '$"the files must be at the same paths on all hosts"'
s 0 no '$"the program must be at the same path on all hosts"'
rankfile 1 no '$"ranks go host by host, as devices are numbered; write how many a host gets: HOST:8, or slots=8"'
rf 1 no '$"ranks go host by host, as devices are numbered; write how many a host gets: HOST:8, or slots=8"'
bynode 0 no '$"ranks go host by host, as devices are numbered; write how many a host gets: HOST:8, or slots=8"'
forward_signals 1 no '$"the launcher needs the signals that mpirun forwards by itself"'
enable_recovery 0 no '$"write --keep_going: the other ranks go on when one fails; or --max_restarts N"'
continuous 0 no '$"write --keep_going: the other ranks go on when one fails; or --max_restarts N"'
xterm 1 no '$"ranks have no terminal; their output is in rank_N.log"'
debug 0 no '$"ranks have no terminal; start one of them in a debugger with what --dry_run prints"'
tv 0 no '$"ranks have no terminal; start one of them in a debugger with what --dry_run prints"'
app 1 no '$"all ranks run one program"'
dvm 1 no '$"the launch starts an mpirun of its own"'
hnp 1 no '$"the launch starts an mpirun of its own"

# The same for parameters, those of -mca; all others are passed to mpirun.
readonly MPIRUN_TABLE_OF_MCA='orte_abort_on_non_zero_status : failure
state_base_error_non_zero_exit : failure
orte_allow_run_as_root .
plm_rsh_agent = ssh
plm_ssh_agent = ssh
orte_rsh_agent = ssh
orte_output_filename = output_filename
plm_rsh_args no '$"write the whole command: --ssh \"ssh -p 2222\""'
plm_ssh_args no '$"write the whole command: --ssh \"ssh -p 2222\""'
mca_base_env_list no '$"write -x NAME=VALUE, once for each variable"'
hwloc_base_binding_policy ~ bind_to
hwloc_default_binding_policy ~ bind_to
rmaps_base_mapping_policy ~ map_by
rmaps_default_mapping_policy ~ map_by
rmaps_base_ranking_policy ~ rank_by
rmaps_default_ranking_policy ~ rank_by
orte_default_hostfile no '$"write --hostfile FILE"'
routed no '$"mpirun would not learn of a lost host; the launch connects it to each of them"'
routed_radix no '$"mpirun would not learn of a lost host; the launch connects it to each of them"'
rml_base_radix no '$"mpirun would not learn of a lost host; the launch connects it to each of them"'
plm_rsh_num_concurrent no '$"mpirun would hang if it were less than the number of hosts; the launch sets it"'
plm_ssh_num_concurrent no '$"mpirun would hang if it were less than the number of hosts; the launch sets it"'
ess_base_forward_signals no '$"the launcher needs the signals that mpirun forwards by itself"'
orte_forward_signals no '$"the launcher needs the signals that mpirun forwards by itself"'
prte_forward_signals no '$"the launcher needs the signals that mpirun forwards by itself"'
orte_enable_recovery no '$"write --keep_going: the other ranks go on when one fails; or --max_restarts N"'
orte_max_restarts no '$"write --max_restarts N"'
orte_xterm no '$"ranks have no terminal; their output is in rank_N.log"
