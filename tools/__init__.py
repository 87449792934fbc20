"""The launcher, the trainer, and the commands around them."""
