"""What the tests of bundles share."""

import json

MIB = 1 << 20
SECRET = "hunter2-hunter2"  # of the fixture failed_run
PLOG = "[ERROR] HCCL(114650,python3):2025-06-19-09:28:35.212.164 [p2p_mgmt.cc:305] [115859]connected p2p timeout\n"


def change(folder, **values):
    path = folder / "launch.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def of_job(found):
    pages = {"contents.txt", "masked.txt", "versions.txt", "explanation.txt"}
    return sorted(found.keys() - pages)
