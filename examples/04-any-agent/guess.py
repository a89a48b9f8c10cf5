"""Hosts a guessing game for the model: it names a digit, and is told whether the number is higher or lower.

An agent as it may have been written before anybody thought of training its model: it reads the number that is to be guessed, and
speaks the chat completions of OpenAI. Needs `pip install openai`; the client reads OPENAI_BASE_URL and OPENAI_API_KEY.
"""

import json
import os

from openai import OpenAI

MOST_GUESSES = 4


def hint(guess: str, secret: int) -> str:
    if len(guess) != 1 or guess not in "0123456789":
        return "digit"
    return "higher" if secret > int(guess) else "lower"


def main() -> None:
    row = json.loads(os.environ["HONE_TASK"])["row"]
    secret = int(row["reward_model"]["ground_truth"])
    client = OpenAI()
    messages = [{"role": "user", "content": row["prompt"]}]
    for _ in range(MOST_GUESSES):
        answer = client.chat.completions.create(model="policy", messages=messages, max_tokens=2)
        guess = answer.choices[0].message.content
        if guess == str(secret):
            return
        messages.append({"role": "assistant", "content": guess})
        messages.append({"role": "user", "content": hint(guess, secret)})


main()
