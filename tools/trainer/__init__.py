"""The trainer: what train.py, eval.py and convert_ckpt.py use."""
