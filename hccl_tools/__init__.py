"""HCCL rank tables: commands, and the rooms that they share with the launcher; see docs/architecture.md."""
