"""Builds rank tables: for one host, for a super pod, or from several tables; and writes the file."""
