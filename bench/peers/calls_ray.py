"""Ray: echo calls of 2 KiB to one async actor, all of a round at once, as training systems on Ray do.

calls_ray.py [calls a round]
"""

import sys
import time

from rounds import answer_rounds

import ray

CONCURRENCY = 1_000
BODY = b"x" * 2_048

calls = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
ray.init(include_dashboard=False, logging_level="ERROR", log_to_driver=False)


@ray.remote(num_cpus=0.1)
class Echo:
    async def call(self, payload):
        return payload


echo = Echo.options(max_concurrency=CONCURRENCY).remote()
ray.get(echo.call.remote(BODY))


def round(_):
    start = time.perf_counter()
    answers = ray.get([echo.call.remote(BODY) for _ in range(calls)])
    seconds = time.perf_counter() - start
    assert all(len(answer) == len(BODY) for answer in answers)
    return {"calls": calls, "seconds": seconds, "version": ray.__version__}


answer_rounds(round)
