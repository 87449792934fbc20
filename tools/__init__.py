"""The trainer, and the Python that launching needs: configs, the launch plan, the scheduler."""
