"""Plays episodes of a run until the run is over: the answer to a digit should be the next one. Needs only Python 3.9 or newer."""

import json
import os
import time
import urllib.error
import urllib.request
import uuid

URL, SWARM_KEY, RUN = (os.environ[f"HONE_SWARM_{name}"] for name in ("URL", "KEY", "RUN"))


def post(url: str, key: str, body: dict) -> tuple:
    """Asks until there is an answer: each request may be repeated, also one whose answer was lost."""
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    for _ in range(30):
        try:
            request = urllib.request.Request(url, json.dumps(body).encode(), headers)
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            if error.code != 429 and error.code < 500:
                return error.code, json.loads(error.read())
        except OSError:
            pass
        time.sleep(1)
    raise SystemExit(f"{url} does not answer")


while True:
    status, begun = post(f"{URL}/runs/{RUN}/episodes", SWARM_KEY, {"claim": str(uuid.uuid4())})
    if status == 204:
        continue  # none waits, as the run is training
    if begun.get("error", {}).get("code") == "run_over":
        break
    if status != 200:
        raise SystemExit(begun)
    task, session, episode = begun["task"], begun["session"], begun["episode"]
    call = {"model": session["model"], "messages": task["prompt"]}
    status, answer = post(f"{session['openaiBaseUrl']}/chat/completions", session["key"], call)
    if status == 200:
        guess = answer["choices"][0]["message"]["content"]
        reward = 1 if guess == task["row"]["reward_model"]["ground_truth"] else 0
        post(f"{episode['url']}/end", episode["key"], {"reward": reward})
    else:
        post(f"{episode['url']}/abort", episode["key"], {"reason": str(answer)})
