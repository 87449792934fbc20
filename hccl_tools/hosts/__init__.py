"""Other hosts: the hostfile, queries to all of them, and the network of their cards."""
