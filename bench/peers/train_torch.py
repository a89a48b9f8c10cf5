"""PyTorch: loss and gradients of a model on random tokens, scaled dot-product attention.

train_torch.py MODEL eager|compile ROWS TOKENS float32|bfloat16     bfloat16 by autocast, weights stay float32
"""

import os
import sys
import time

from rounds import answer_rounds

import torch
from transformers import AutoModelForCausalLM

folder, mode, rows, tokens, dtype = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
torch.set_num_threads(os.cpu_count())
model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").train()
forward = torch.compile(model) if mode == "compile" else model


def round(_):
    ids = torch.randint(5, model.config.vocab_size - 100, (rows, tokens))
    start = time.perf_counter()
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bfloat16"):
        logits = forward(input_ids=ids, use_cache=False).logits
    logprobs = torch.log_softmax(logits[:, :-1].float(), -1).gather(-1, ids[:, 1:, None]).squeeze(-1)
    (-logprobs.mean()).backward()
    seconds = time.perf_counter() - start
    model.zero_grad()
    return {"tokens": rows * tokens, "seconds": seconds}


# A first round, in which PyTorch compiles the model, is not counted.
round("")
answer_rounds(round)
