"""Other hosts: the hostfile, questions to all of them, and the network of their cards."""

from hccl_tools.common.language import marked

# What --help says of --ssh.
MEANING = marked(
    'the command that reaches other hosts, such as "ssh -F FILE" (default: OMPI_MCA_plm_rsh_agent, else ssh)'
)
