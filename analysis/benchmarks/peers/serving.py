"""One contender, run by turns: ``python -P serving.py PROGRAM JOB`` reads requests and answers each by a JSON line.

``PROGRAM`` is a file with a function ``prepare(job)``, which returns ``run(factor)``; the factor multiplies the gain
of the network. Requests: ``run FACTOR`` → seconds of both clocks; ``save FILE`` (what the last run returned);
``peak`` → GiB of resident memory beyond what the imports took. Stands alone: the interpreter is the peer's own.
"""

import json
import os
import runpy
import sys
import time
from pathlib import Path


def one_core():
    """Keep to one core, so that wall time and processor time mean the same for every contender."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def resident(row):
    """GiB of resident memory by a row of the process's status (Linux), else 0."""
    status = Path("/proc/self/status")
    return int(status.read_text().split(row)[1].split()[0]) / 2**20 if status.exists() else 0.0


def main():
    """Prepare, then answer until the requests end."""
    one_core()
    import numpy as np

    program, words = sys.argv[1:]
    run = runpy.run_path(program)["prepare"](json.loads(words))
    before, found = resident("VmRSS:"), np.zeros(0)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request, _, value = line.strip().partition(" ")
        answer = {}
        if request == "run":
            wall, processor = time.perf_counter(), time.process_time()
            found = run(float(value))
            answer = {"wall": time.perf_counter() - wall, "processor": time.process_time() - processor}
        elif request == "save":
            np.save(value, found)
        elif request == "peak":
            answer = {"peak GiB": resident("VmHWM:") - before}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
