"""The official OpenAI client for Python against a session; prints one line for each check, fails at the first that does not hold.

OPENAI_BASE_URL and OPENAI_API_KEY say where the session is, OTHER_KEY is that of another session.
"""

import json
import os
import sys

import openai
from openai import OpenAI

client = OpenAI(max_retries=0)
LOOK = {
    "name": "look",
    "description": "Looks at a place",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
}
TOOLS = [{"type": "function", "function": LOOK}]
QUESTION = [{"role": "user", "content": "tell me about the lake"}]


def ask(**options):
    given = {"model": "policy", "messages": QUESTION, "max_tokens": 24, **options}
    return client.chat.completions.create(**given)


def ask_until(wanted, **options):
    for seed in range(60):
        answer = ask(seed=seed, **options)
        if wanted(answer.choices[0]):
            return answer, seed
    raise AssertionError("no answer of the wanted kind")


def usage_and_seeds():
    first, again, other = ask(seed=1), ask(seed=1), ask(seed=2)
    assert first.choices[0].message.content == again.choices[0].message.content
    assert first.choices[0].message.content != other.choices[0].message.content
    assert first.usage.total_tokens == first.usage.prompt_tokens + first.usage.completion_tokens


def streaming():
    whole = ask(seed=3).choices[0].message.content
    chunks = list(ask(seed=3, stream=True, stream_options={"include_usage": True}))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == whole
    assert chunks[-1].usage.completion_tokens > 0


def stop():
    whole = ask(seed=5).choices[0].message.content
    stopped = ask(seed=5, stop=whole[20:24]).choices[0]
    assert stopped.message.content == whole[: whole.index(whole[20:24])]
    assert stopped.finish_reason == "stop"


def parallel_calls():
    messages = [{"role": "user", "content": "look at 2"}]
    answer, _ = ask_until(lambda c: len(c.message.tool_calls or []) == 2, messages=messages, tools=TOOLS)
    message = answer.choices[0].message
    assert answer.choices[0].finish_reason == "tool_calls"
    for call in message.tool_calls:
        assert call.function.name == "look" and "place" in json.loads(call.function.arguments)
    results = [{"role": "tool", "tool_call_id": call.id, "content": "wet"} for call in message.tool_calls]
    # The message as the client has it, and as its own dump.
    for given in (message, message.model_dump(exclude_none=True)):
        following = ask(messages=[*messages, given, *results], tools=TOOLS)
        assert following.usage.prompt_tokens > answer.usage.prompt_tokens + answer.usage.completion_tokens


def responses():
    first = client.responses.create(model="policy", input="tell me", max_output_tokens=24)
    assert first.usage.output_tokens > 0
    following = client.responses.create(
        model="policy", input="and then", previous_response_id=first.id, max_output_tokens=24
    )
    assert following.usage.input_tokens > first.usage.input_tokens + first.usage.output_tokens
    with client.responses.stream(model="policy", input="tell me", max_output_tokens=24) as stream:
        told, final = "", None
        for event in stream:
            if event.type == "response.output_text.delta":
                told += event.delta
            elif event.type in ("response.completed", "response.incomplete"):
                final = event.response
        assert final is not None and final.output_text == told


def demands():
    both = ask(n=2, seed=7).choices
    assert both[0].message.content != both[1].message.content
    schema = {"name": "place", "schema": {"type": "object"}, "strict": True}
    answer = ask(response_format={"type": "json_schema", "json_schema": schema}).choices[0]
    assert answer.model_extra["demands"]["response_format"]["is_met"] is False


def errors():
    for options, kind in (({"messages": []}, openai.BadRequestError), ({"n": 65}, openai.BadRequestError)):
        try:
            ask(**options)
        except kind as error:
            assert error.param in ("messages", "n"), error.param
        else:
            raise AssertionError(f"answered {options}")
    stranger = OpenAI(api_key=os.environ["OTHER_KEY"], max_retries=0)
    try:
        stranger.chat.completions.create(model="policy", messages=QUESTION)
    except openai.AuthenticationError:
        return
    raise AssertionError("another session's key opens this one")


def disconnect():
    with ask(messages=[{"role": "user", "content": "tell me all"}], max_tokens=1500, stream=True) as stream:
        for chunk in stream:
            if chunk.choices[0].delta.content:
                break


for check in (usage_and_seeds, streaming, stop, parallel_calls, responses, demands, errors, disconnect):
    check()
    print("ok", check.__name__)
    sys.stdout.flush()
