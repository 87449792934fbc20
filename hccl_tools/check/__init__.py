"""Checks whether a rank table is valid: first the JSON Schemas, then the rules that HCCL has beyond them."""
