"""Serves environments over HTTP with the verbs of AgentJet's environment service.

    python server.py [--port 8901]

The type of an environment is the id of any environment that is registered with Gymnasium and has discrete actions, such as
FrozenLake-v1, or reasoning_gym/NAME for a task of reasoning-gym (reasoning.py). A task is a seed.
"""

import argparse
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from refusal import Refusal

TASKS = {"train": range(0, 1_000), "test": range(1_000_000, 1_000_100)}
MAX_INSTANCES = 4_096
# A client that died releases nothing, so instances end after this long without a call.
IDLE_SECONDS = 3_600


class Service:
    """The verbs, and the episodes that were created and not released."""

    def __init__(self):
        self.lock = threading.Lock()
        self.episodes = {}
        self.called_at = {}

    def get_env_profile(self, request):
        split = request["params"].get("split", "train")
        if split not in TASKS:
            raise Refusal(400, f'there is no split "{split}"; there are {", ".join(TASKS)}')
        return [str(seed) for seed in TASKS[split]]

    def create(self, request):
        name, params = request["instance_id"], dict(request["params"])
        with self.lock:
            for other, at in list(self.called_at.items()):
                if time.monotonic() - at > IDLE_SECONDS:
                    self.forget(other)
            if len(self.episodes) >= MAX_INSTANCES:
                raise Refusal(429, f"{MAX_INSTANCES} instances are open; release some")
        if not str(request["task_id"]).isdecimal():
            raise Refusal(404, f'there is no task "{request["task_id"]}"; a task is a number')
        episode = make_episode(request["env_type"], int(request["task_id"]), params)
        with self.lock:
            self.episodes[name] = episode
            self.called_at[name] = time.monotonic()
        return answer(episode.begin(), 0.0, False, {})

    def step(self, request):
        return answer(*self.episode(request).step(request["messages"].get("content") or ""))

    def evaluate(self, request):
        return self.episode(request).evaluate()

    def get_info(self, request):
        return self.episode(request).actions

    def release(self, request):
        with self.lock:
            return self.forget(request["instance_id"])

    def forget(self, name):
        self.called_at.pop(name, None)
        episode = self.episodes.pop(name, None)
        if episode is not None:
            episode.close()

    def episode(self, request):
        name = request["instance_id"]
        with self.lock:
            if name not in self.episodes:
                raise Refusal(404, f'there is no instance "{name}"')
            self.called_at[name] = time.monotonic()
            return self.episodes[name]


def make_episode(env_type, seed, params):
    """Packages are imported when a client asks for them, so each can be left out."""
    if env_type.startswith("reasoning_gym/"):
        from reasoning import Reasoning

        return Reasoning(env_type.removeprefix("reasoning_gym/"), seed, params)
    from games import Game

    return Game(env_type, seed, params)


def answer(text, reward, is_terminated, info):
    state = [{"role": "user", "content": text}]
    return {"state": state, "reward": float(reward), "is_terminated": is_terminated, "info": info}


class Handler(BaseHTTPRequestHandler):
    verbs = ("get_env_profile", "create", "step", "evaluate", "get_info", "release")

    def do_POST(self):
        try:
            verb = self.path.strip("/")
            if verb not in self.verbs:
                raise Refusal(404, f'there is no "{verb}"; there are {", ".join(self.verbs)}')
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            request = {"messages": {}, "params": {}, **request}
            self.reply(200, {"success": True, "data": getattr(self.server.service, verb)(request)})
        except Refusal as refusal:
            self.reply(refusal.status, {"success": False, "message": str(refusal)})
        except Exception as error:
            self.reply(500, {"success": False, "message": repr(error)})

    def reply(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """A line for each call would be thousands in each step of a run."""


class Server(ThreadingHTTPServer):
    # Many rollouts connect at the same moment.
    request_queue_size = 1_024
    service = Service()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8901)
    options = parser.parse_args()
    server = Server((options.host, options.port), Handler)
    print(f"serving environments at http://{options.host}:{server.server_port}", flush=True)
    server.serve_forever()
