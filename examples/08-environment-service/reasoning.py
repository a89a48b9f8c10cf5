"""Tasks of reasoning-gym, each a question and an answer."""

import reasoning_gym

from refusal import Refusal


class Reasoning:
    """`params` are those of reasoning_gym.create_dataset, such as the difficulty."""

    actions = "a text with the answer"

    def __init__(self, name, seed, params):
        params.pop("seed", None)  # a client's seed, which is the task here
        try:
            self.tasks = reasoning_gym.create_dataset(name, seed=seed, size=1, **params)
            self.task = self.tasks[0]
        except (ValueError, TypeError, AssertionError) as error:
            raise Refusal(404, f'cannot make "{name}" with {params}: {error}') from error
        self.score = 0.0

    def begin(self):
        return f"{self.task['question']}\nEnd with the answer between <answer> and </answer>."

    def step(self, answer):
        """The first answer ends the episode, with a score from 0 to 1 by the task's own rules."""
        _, begin, rest = answer.rpartition("<answer>")
        given = rest.partition("</answer>")[0].strip() if begin else answer.strip()
        self.score = float(self.tasks.score_answer(answer=given, entry=self.task))
        is_right = self.score >= 1
        return "Right." if is_right else "Wrong.", self.score, True, {"success": is_right, "action_is_valid": bool(begin)}

    def evaluate(self):
        return self.score

    def close(self):
        pass
