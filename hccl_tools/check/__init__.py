"""Whether a rank table is right: the JSON Schemas, then the rules that HCCL has beyond them."""
