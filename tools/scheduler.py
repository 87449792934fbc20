#!/usr/bin/env python3
"""MindSpore's scheduler: the process that the ranks of a dynamic cluster register with.

The launcher starts one beside the ranks (MS_ROLE=MS_SCHED); it needs no trainer and no model, only
the address it listens on (MS_SCHED_HOST, MS_SCHED_PORT) and how many workers to expect
(MS_WORKER_NUM).  It ends when all of them have left.
"""

import mindspore
from mindspore import communication

mindspore.set_device("CPU")
communication.init()
communication.release()
