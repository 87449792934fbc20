"""Engines: what starts the ranks.  `local` does it itself; mpirun, srun and msrun start an agent for each rank."""
