"""
What transformers computes, in float32, for `npm run parity`.

    python reference.py write MODEL TEXT OUT    # prompts cut out of the file TEXT
    python reference.py check MODEL OUT         # the logits of another checkpoint against those in OUT

`write` makes in OUT
  reference.json         per prompt: ids, the positions whose logits are kept, a greedy continuation; a batch and its loss
  logits.f32             [positions of all prompts, vocabulary], raw
  gradients.safetensors  of the batch's mean cross-entropy
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

LENGTHS = [1, 2, 3, 5, 8, 13, 21, 34, 55, 63, 64, 65, 100, 128, 200, 333, 512, 700, 900, 1000]
MAX_POSITIONS = 8  # of a prompt, spread evenly, the last one always
NEW_TOKENS = 64
BATCH = (2, 96)  # sequences and their length
MAX_ERROR = 1e-5  # the same weights in the same program


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


@torch.no_grad()
def logits_of(model, prompt):
    logits = model(input_ids=torch.tensor([prompt["ids"]])).logits[0]
    return logits[prompt["positions"]].contiguous()


def write(folder, text, out):
    model = load(folder)
    ids = AutoTokenizer.from_pretrained(folder)(pathlib.Path(text).read_text())["input_ids"]
    prompts, start = [], 0
    for length in LENGTHS:
        own = ids[start : start + length]
        count = min(MAX_POSITIONS, length)
        positions = [length * (i + 1) // count - 1 for i in range(count)]
        prompts.append({"ids": own, "positions": positions})
        start = (start + length) % (len(ids) - max(LENGTHS))
    with open(out / "logits.f32", "wb") as file:
        for prompt in prompts:
            file.write(logits_of(model, prompt).numpy().tobytes())
            with torch.no_grad():
                generated = model.generate(
                    torch.tensor([prompt["ids"]]),
                    max_new_tokens=NEW_TOKENS,
                    min_new_tokens=NEW_TOKENS,
                    do_sample=False,
                    eos_token_id=None,
                    pad_token_id=0,
                )
            prompt["continuation"] = generated[0, len(prompt["ids"]) :].tolist()
    rows, length = BATCH
    batch = torch.tensor(ids[: rows * length]).reshape(rows, length)
    logprobs = torch.log_softmax(model(input_ids=batch).logits[:, :-1], -1)
    loss = -logprobs.gather(-1, batch[:, 1:, None]).mean()
    loss.backward()
    save_file({n: p.grad.contiguous() for n, p in model.named_parameters()}, out / "gradients.safetensors")
    reference = {"prompts": prompts, "batch": batch.tolist(), "loss": loss.item()}
    (out / "reference.json").write_text(json.dumps(reference))


def check(folder, out):
    model = load(folder)
    reference = json.loads((out / "reference.json").read_text())
    kept = torch.frombuffer(bytearray((out / "logits.f32").read_bytes()), dtype=torch.float32)
    kept = kept.reshape(-1, model.config.vocab_size)
    worst, at = 0.0, 0
    for prompt in reference["prompts"]:
        logits = logits_of(model, prompt)
        worst = max(worst, (logits - kept[at : at + len(logits)]).abs().max().item())
        at += len(logits)
    print(f"export loaded by transformers: largest difference of a logit {worst:.2e} (at most {MAX_ERROR:.0e})")
    sys.exit(0 if worst <= MAX_ERROR else 1)


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4]))
    else:
        check(sys.argv[2], pathlib.Path(sys.argv[3]))
