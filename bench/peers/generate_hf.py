"""transformers: continuations of prompts of one length, sampled at temperature 1. generate_hf.py MODEL float32|bfloat16

A round is {"prompts": [[token, ...], ...], "samples": how many of each, "newTokens": tokens of each}.
"""

import json
import os
import sys
import time

from rounds import answer_rounds

import torch
from transformers import AutoModelForCausalLM

torch.set_num_threads(os.cpu_count())
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=getattr(torch, sys.argv[2])).eval()


def round(line):
    wanted = json.loads(line)
    ids, new = torch.tensor(wanted["prompts"]), wanted["newTokens"]
    start = time.perf_counter()
    made = model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=new,
        min_new_tokens=new,
        do_sample=True,
        temperature=1.0,
        num_return_sequences=wanted["samples"],
        pad_token_id=2,
    )
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "ids": made[:, ids.shape[1] :].tolist()}


answer_rounds(round)
