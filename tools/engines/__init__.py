"""Engines start the ranks: `local` directly; mpirun, srun and msrun through an agent for each rank."""
