"""TRL: whole GRPO steps (generate, score, train) on one kind of prompt, rewards at random.

grpo_trl.py MODEL PROMPTS SAMPLES NEW_TOKENS float32|bfloat16     prompts of a step, completions of each, tokens of each completion
"""

import os
import random
import sys
import tempfile
import time

from rounds import answer, next_line, ready

import torch
from datasets import Dataset
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

PROMPT = "You are solving the FrozenLake puzzle. " * 12  # the same prompt as in grpo.ts
TASKS = 64
MANY_STEPS = 10_000

folder, prompts, samples, new_tokens = sys.argv[1], *map(int, sys.argv[2:5])
torch.set_num_threads(os.cpu_count())
rows = Dataset.from_list([{"prompt": PROMPT + str(task)} for task in range(TASKS)])


class Rounds(TrainerCallback):
    """Ends a round after each step."""

    def on_train_begin(self, args, state, control, **kwargs):
        ready()

    def on_step_begin(self, args, state, control, **kwargs):
        next_line()
        self.start = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        answer({"seconds": time.perf_counter() - self.start})


with tempfile.TemporaryDirectory() as out:
    config = GRPOConfig(
        output_dir=out,
        per_device_train_batch_size=samples,
        gradient_accumulation_steps=prompts,
        num_generations=samples,
        max_completion_length=new_tokens,
        max_steps=MANY_STEPS,
        learning_rate=1e-6,
        report_to=[],
        use_cpu=True,
        bf16=sys.argv[5] == "bfloat16",
        beta=0.0,
        save_strategy="no",
        logging_strategy="no",
        generation_kwargs={"min_new_tokens": new_tokens},
    )
    GRPOTrainer(
        model=folder,
        reward_funcs=lambda completions, **_: [random.random() for _ in completions],
        args=config,
        train_dataset=rows,
        callbacks=[Rounds()],
    ).train()
