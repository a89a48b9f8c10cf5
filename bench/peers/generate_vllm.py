"""vLLM on CPU: continuations with the logprobs of what was sampled, at temperature 1. generate_vllm.py MODEL float32|bfloat16

A round is {"prompts": [[token, ...], ...], "samples": how many of each, "newTokens": tokens of each}.
"""

import json
import os
import sys
import time

from rounds import answer_rounds

os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "4")
os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", f"0-{os.cpu_count() - 1}")
from vllm import LLM, SamplingParams  # noqa: E402

if __name__ == "__main__":
    llm = LLM(sys.argv[1], dtype=sys.argv[2], max_model_len=2048, enforce_eager=True)

    def round(line):
        wanted = json.loads(line)
        new = wanted["newTokens"]
        sampling = SamplingParams(
            n=wanted["samples"], temperature=1.0, max_tokens=new, min_tokens=new, ignore_eos=True, logprobs=0
        )
        prompts = [{"prompt_token_ids": ids} for ids in wanted["prompts"]]
        start = time.perf_counter()
        made = llm.generate(prompts, sampling, use_tqdm=False)
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "ids": [list(each.token_ids) for output in made for each in output.outputs]}

    answer_rounds(round)
