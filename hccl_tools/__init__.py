"""HCCL rank tables: the commands, and the packages that they share with the launcher; see docs/architecture.md."""
