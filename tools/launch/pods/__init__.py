"""Launches in pods of Kubernetes."""
