"""
What transformers and PyTorch compute, in float32, for `npm run parity`.

    python reference.py models FOLDER            # small random checkpoints of every family
    python reference.py write MODEL OUT [TEXT]   # prompts and batches cut out of the file TEXT; without it, random ones
    python reference.py check MODEL OUT          # the logits of another checkpoint against those in OUT

`write` makes in OUT
  reference.json                 per prompt: ids, the positions whose logits are kept, a greedy continuation; the batches,
                                 each with its samples and its loss
  logits.f32                     [positions of all prompts, vocabulary], raw
  gradients-<batch>.safetensors  of each batch's loss
  adapter/                       LoRA on every projection, as PEFT stores it, for the batch "lora"
  optimizer.safetensors          the parameters after some steps of AdamW on the gradients of the first batch

Every sample of a batch is computed alone, so neither padding nor packing is in the reference.
"""

import json
import pathlib
import random
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

FAMILIES = pathlib.Path(__file__).parents[2] / "libs" / "checkpoint" / "fixtures"
# Large enough that sums are long, small enough that six of them take a minute.
SIZES = dict(
    vocab_size=512,
    hidden_size=64,
    num_hidden_layers=3,
    num_attention_heads=8,
    num_key_value_heads=2,
    intermediate_size=160,
    max_position_embeddings=2048,
    initializer_range=0.1,
    bos_token_id=None,
    eos_token_id=1,
    pad_token_id=None,
)
SHARD = "200KB"

LENGTHS = [1, 2, 3, 5, 8, 13, 21, 34, 55, 63, 64, 65, 100, 128, 200, 333, 512, 700, 900, 1000]
MAX_POSITIONS = 8  # of a prompt, spread evenly, the last one always
NEW_TOKENS = 64
MAX_ERROR = 1e-5  # the same weights in the same program

CLIP_LOW, CLIP_HIGH = 0.2, 0.28
ADAMW = dict(lr=1e-2, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
GRADIENT_FACTORS = [1.0, -0.5, 2.0]
LORA = dict(r=8, lora_alpha=16)
LORA_SCALE = 0.05  # of both its matrices: enough that a wrong product shows


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def models(folder):
    sys.path.insert(0, str(FAMILIES))
    import make_families

    for name, (config, stored, shard) in make_families.models(SIZES).items():
        make_families.make_checkpoint(folder / name, config, stored, shard and SHARD)


@torch.no_grad()
def logits_of(model, prompt):
    logits = model(input_ids=torch.tensor([prompt["ids"]])).logits[0]
    return logits[prompt["positions"]].contiguous()


def sample(ids, trained, draw):
    """A sample with what a policy loss reads of its trained tokens; those at the marked indices are trained."""
    numbers = {"advantages": 1.0, "logprobs": -2.0, "weights": 0.02}
    return {
        "tokenIds": ids,
        "lossMask": [int(index in trained) for index in range(len(ids))],
        **{name: [scale * (0.5 + draw.random()) for _ in trained] for name, scale in numbers.items()},
    }


def batches_of(ids):
    """name -> loss and samples, cut out of the ids"""
    draw = random.Random(5)
    rest = iter(ids)

    def take(count):
        return [next(rest) for _ in range(count)]

    def everything(row):
        return set(range(1, len(row)))

    def some(row):
        return set(draw.sample(range(1, len(row)), len(row) // 3))

    def turns(row, prompt):  # as an agent's record: what was sampled between what was observed
        return {index for index in range(prompt, len(row)) if (index - prompt) % 20 < 12}

    plain = [take(96), take(96)]
    packed = [take(length) for length in (7, 50, 12, 33, 64, 5)]
    masked = [take(length) for length in (40, 90, 65)]
    tree = []
    for _ in range(2):
        prompt = take(40)
        stem = prompt + take(20)
        tree += [prompt + take(24), prompt + take(31), stem + take(12), stem + take(25), stem]
    batches = {
        "plain": ("cross_entropy", [sample(row, everything(row), draw) for row in plain]),
        "packed": ("cross_entropy", [sample(row, everything(row), draw) for row in packed]),
        "masked": ("ppo_clip", [sample(row, some(row), draw) for row in masked]),
        "tree": ("ppo_clip", [sample(row, turns(row, 40), draw) for row in tree]),
    }
    for _, samples in batches.values():
        for index, each in enumerate(samples):
            if index % 2:
                each["advantages"] = [-value for value in each["advantages"]]
    return batches


def loss_of(model, kind, each):
    """Clipped as in PPO with bounds apart, or the negative log-probability; weighted and summed."""
    ids, mask = torch.tensor([each["tokenIds"]]), torch.tensor(each["lossMask"][1:]).bool()
    logprobs = torch.log_softmax(model(input_ids=ids).logits[0, :-1], -1).gather(-1, ids[0, 1:, None])[:, 0][mask]
    weights, advantages, behaviour = (torch.tensor(each[name]) for name in ("weights", "advantages", "logprobs"))
    if kind == "cross_entropy":
        return -(weights * logprobs).sum()
    ratio = (logprobs - behaviour).exp()
    clipped = ratio.clamp(1 - CLIP_LOW, 1 + CLIP_HIGH)
    return -(weights * torch.min(ratio * advantages, clipped * advantages)).sum()


def gradients_of(model):
    return {name: p.grad.contiguous() for name, p in model.named_parameters()}


@torch.no_grad()
def near(model, samples):
    """Behaviour a little off the policy, so that some ratios are clipped and others are not."""
    draw = random.Random(9)
    for each in samples:
        ids = torch.tensor([each["tokenIds"]])
        logprobs = torch.log_softmax(model(input_ids=ids).logits[0, :-1], -1).gather(-1, ids[0, 1:, None])[:, 0]
        own = logprobs[torch.tensor(each["lossMask"][1:]).bool()].tolist()
        each["logprobs"] = [value + draw.choice([-0.4, -0.1, 0.1, 0.4]) for value in own]


def differentiate(model, kind, samples):
    """The loss; gradients are left in the model."""
    model.zero_grad()
    loss = 0.0
    for each in samples:
        part = loss_of(model, kind, each)
        part.backward()
        loss += part.item()
    return loss


def add_adapters(model):
    """PEFT's name -> matrix; the rest of the model is frozen."""
    draw = torch.Generator().manual_seed(11)
    adapters = {}
    model.requires_grad_(False)
    for name, layer in model.model.named_modules():
        if not isinstance(layer, torch.nn.Linear):
            continue
        a, b = (
            (LORA_SCALE * torch.randn(shape, generator=draw)).requires_grad_()
            for shape in ((LORA["r"], layer.in_features), (layer.out_features, LORA["r"]))
        )

        def adapted(_, inputs, output, a=a, b=b):
            return output + LORA["lora_alpha"] / LORA["r"] * (inputs[0] @ a.T) @ b.T

        layer.register_forward_hook(adapted)
        path = f"base_model.model.model.{name}"
        adapters |= {f"{path}.lora_A.weight": a, f"{path}.lora_B.weight": b}
    return adapters


def write_adapters(folder, adapters, out):
    out.mkdir()
    save_file({name: values.detach() for name, values in adapters.items()}, out / "adapter_model.safetensors")
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": str(pathlib.Path(folder).resolve()),
        "target_modules": sorted({name.split(".")[-3] for name in adapters}),
        "lora_dropout": 0.0,
        "bias": "none",
        **LORA,
    }
    (out / "adapter_config.json").write_text(json.dumps(config))


def write(folder, out, text):
    model = load(folder)
    if text is None:
        draw = random.Random(3)
        ids = [draw.randrange(model.config.vocab_size) for _ in range(6 * max(LENGTHS))]
    else:
        ids = AutoTokenizer.from_pretrained(folder)(pathlib.Path(text).read_text())["input_ids"]
    model.generation_config.eos_token_id = None  # no continuation ends early
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
                    attention_mask=torch.ones(1, len(prompt["ids"])),  # else the padding token is masked in prompts
                    max_new_tokens=NEW_TOKENS,
                    do_sample=False,
                    pad_token_id=0,
                )
            prompt["continuation"] = generated[0, len(prompt["ids"]) :].tolist()
    batches = []
    for name, (kind, samples) in batches_of(ids).items():
        if kind == "ppo_clip":
            near(model, samples)
        loss = differentiate(model, kind, samples)
        save_file(gradients_of(model), out / f"gradients-{name}.safetensors")
        batches.append({"name": name, "loss": kind, "value": loss, "samples": samples})
        if name == "plain":
            first = {name: gradient.clone() for name, gradient in gradients_of(model).items()}
    batches.append(write_lora_batch(folder, batches[-1]["samples"], out))
    write_optimizer(model, first, out)
    constants = {"clipLow": CLIP_LOW, "clipHigh": CLIP_HIGH, "adamw": ADAMW, "gradientFactors": GRADIENT_FACTORS}
    (out / "reference.json").write_text(json.dumps({"prompts": prompts, "batches": batches, **constants}))


def write_lora_batch(folder, samples, out):
    """The tree again, on a model with adapters."""
    model = load(folder)
    adapters = add_adapters(model)
    write_adapters(folder, adapters, out / "adapter")
    samples = [dict(each) for each in samples]
    near(model, samples)
    loss = differentiate(model, "ppo_clip", samples)
    save_file({name: values.grad for name, values in adapters.items()}, out / "gradients-lora.safetensors")
    return {"name": "lora", "loss": "ppo_clip", "value": loss, "samples": samples}


def write_optimizer(model, gradients, out):
    """Weight decay is on matrices and embeddings only."""
    named = list(model.named_parameters())
    decayed = [p for _, p in named if p.ndim == 2]
    others = [p for _, p in named if p.ndim != 2]
    groups = [{"params": decayed}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, **ADAMW)
    for factor in GRADIENT_FACTORS:
        for name, p in named:
            p.grad = factor * gradients[name]
        optimizer.step()
    save_file({name: p.detach().contiguous() for name, p in named}, out / "optimizer.safetensors")


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
    print(f"  export loaded by transformers: largest difference of a logit {worst:.2e} (at most {MAX_ERROR:.0e})")
    sys.exit(0 if worst <= MAX_ERROR else 1)


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    if command == "models":
        models(pathlib.Path(rest[0]))
    elif command == "write":
        write(rest[0], pathlib.Path(rest[1]), rest[2] if len(rest) > 2 else None)
    else:
        check(rest[0], pathlib.Path(rest[1]))
