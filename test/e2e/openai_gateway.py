"""The official OpenAI client for Python against a gateway; prints one line for each check, fails at the first that does not hold.

OPENAI_BASE_URL and OPENAI_API_KEY say where the gateway is, MODEL is a checkpoint that it serves.
"""

import os
import sys

import openai
from openai import OpenAI

client = OpenAI(max_retries=0)
MODEL = os.environ["MODEL"]
QUESTION = [{"role": "user", "content": "Tell me about the lake."}]


def ask(**options):
    given = {"model": MODEL, "messages": QUESTION, "max_tokens": 24, "seed": 1, **options}
    return client.chat.completions.create(**given)


def models():
    assert MODEL in [model.id for model in client.models.list()]
    assert client.models.retrieve(MODEL).id == MODEL


def usage_and_seeds():
    first, again, other = ask(), ask(), ask(seed=2)
    assert first.choices[0].message.role == "assistant"
    assert first.choices[0].message.content == again.choices[0].message.content
    assert first.choices[0].message.content != other.choices[0].message.content
    assert first.usage.total_tokens == first.usage.prompt_tokens + first.usage.completion_tokens
    greedy = [ask(temperature=0, seed=seed).choices[0].message.content for seed in (1, 2)]
    assert greedy[0] == greedy[1]


def streaming():
    whole = ask(seed=3)
    chunks = list(ask(seed=3, stream=True, stream_options={"include_usage": True}))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == whole.choices[0].message.content
    assert chunks[-1].usage == whole.usage


def choices_and_logprobs():
    answer = ask(n=3, logprobs=True, top_logprobs=2)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    for choice in answer.choices:
        for token in choice.logprobs.content:
            assert token.logprob <= 0 and len(token.top_logprobs) == 2


def stop():
    # A model that nobody trained writes half characters too: two whole ones are looked for.
    for seed in range(60):
        whole = ask(seed=seed).choices[0].message.content
        found = [i for i in range(3, len(whole) - 3) if whole[i : i + 2].isascii()]
        if found:
            break
    end = whole[found[0] : found[0] + 2]
    stopped = ask(seed=seed, stop=[end]).choices[0]
    assert stopped.message.content == whole[: whole.index(end)]
    assert stopped.finish_reason == "stop"


def texts():
    whole = client.completions.create(model=MODEL, prompt="the lake", seed=3, max_tokens=8)
    stream = client.completions.create(model=MODEL, prompt="the lake", seed=3, max_tokens=8, stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream) == whole.choices[0].text


def errors():
    cases = (
        ({"messages": []}, openai.BadRequestError, "messages"),
        ({"temperature": 3}, openai.BadRequestError, "temperature"),
        ({"model": "nothing"}, openai.NotFoundError, "model"),
    )
    for options, kind, param in cases:
        for is_streamed in (False, True):
            try:
                ask(**options, stream=is_streamed)
            except kind as error:
                assert error.param == param, error.param
            else:
                raise AssertionError(f"answered {options}")
    try:
        OpenAI(api_key="another", max_retries=0).models.list()
    except openai.AuthenticationError:
        return
    raise AssertionError("another key opens the gateway")


for check in (models, usage_and_seeds, streaming, choices_and_logprobs, stop, texts, errors):
    check()
    print("ok", check.__name__)
    sys.stdout.flush()
