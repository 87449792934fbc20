"""What is in logs: of ranks, of CANN, of hosts."""
