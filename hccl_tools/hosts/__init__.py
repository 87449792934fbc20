"""Other hosts: the hostfile, questions to all of them, and the network of their cards."""
