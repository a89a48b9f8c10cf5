"""Ray: echo calls of 2 KiB to one async actor, all of a round at once, as training stacks built on Ray make them.

calls_ray.py [calls a round]. Prints "ready", then answers each line of its input with one line of JSON.
"""

import json
import os
import sys
import time

import ray

CONCURRENCY = 1_000
BODY = b"x" * 2_048

# Ray's own messages, such as warnings of many waiting calls, must not stand between the results.
results = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)

calls = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
ray.init(include_dashboard=False, logging_level="ERROR", log_to_driver=False)


@ray.remote(num_cpus=0.1)
class Echo:
    async def call(self, payload):
        return payload


echo = Echo.options(max_concurrency=CONCURRENCY).remote()
ray.get(echo.call.remote(BODY))
print("ready", file=results)
for _ in sys.stdin:
    start = time.perf_counter()
    answers = ray.get([echo.call.remote(BODY) for _ in range(calls)])
    seconds = time.perf_counter() - start
    assert all(len(answer) == len(BODY) for answer in answers)
    print(json.dumps({"calls": calls, "seconds": seconds, "version": ray.__version__}), file=results)
