"""Episodes of Gymnasium's environments, in which what one sees and does is text."""

import re

import gymnasium
from gymnasium.envs.registration import load_env_creator
from gymnasium.envs.toy_text.frozen_lake import generate_random_map

from refusal import Refusal

ACTIONS = {
    "FrozenLake": ["Left", "Down", "Right", "Up"],
    "CliffWalking": ["Up", "Right", "Down", "Left"],
    "Taxi": ["South", "North", "East", "West", "Pickup", "Dropoff"],
    "Blackjack": ["Stick", "Hit"],
    "CartPole": ["Left", "Right"],
}
RULES = {
    "FrozenLake": "P is you, F is ice, H is a hole and G is the goal. Reach the goal, and stay out of the holes.",
    "CliffWalking": "x is you, C is a cliff and T is the goal. Reach the goal in few steps, and stay off the cliff.",
    "Taxi": "T is your taxi, (X) is where the passenger is, and [X] where the passenger wants to go.",
    "Blackjack": "The numbers are the sum of your cards, the dealer's card, and whether you have an ace that counts 11.",
}
# Colours of a drawing, and what stands in their place; @ is the character itself.
COLOURS = {"41": "P", "42": "T", "43": "T", "34;1": "(@)", "35": "[@]"}
COLOURED = re.compile(r"\x1b\[([\d;]+)m(.)\x1b\[0m")
LAST_ACTION = re.compile(r"^ *\(\w+\) *$", re.MULTILINE)


class Game:
    """`params` are those of gymnasium.make, and

    map_size        FrozenLake: each task is a random map of this size, and not one of Gymnasium's two
    terse           the first message shows the state alone, without rules and actions
    invalid_reward  reward of an answer that holds no action, which moves nothing; 0 unless given
    """

    def __init__(self, env_type, seed, params):
        self.seed = seed
        self.family = env_type.split("-")[0].removesuffix("Slippery")
        self.is_terse = params.pop("terse", False)
        self.invalid_reward = params.pop("invalid_reward", 0)
        params.pop("seed", None)  # a client's seed, which is the task here
        if ":" in env_type:
            raise Refusal(404, f'there is no "{env_type}"; names of modules are not imported')
        try:
            if "map_size" in params:
                params["desc"] = generate_random_map(size=params.pop("map_size"), seed=seed)
            creator = load_env_creator(gymnasium.spec(env_type).entry_point)
            if "ansi" in creator.metadata["render_modes"]:
                params["render_mode"] = "ansi"
            self.env = gymnasium.make(env_type, **params)
        except (gymnasium.error.Error, TypeError, ValueError, AssertionError) as error:
            raise Refusal(404, f'cannot make "{env_type}" with {params}: {error}') from error
        if not isinstance(self.env.action_space, gymnasium.spaces.Discrete):
            raise Refusal(400, f'the actions of "{env_type}" are not discrete: {self.env.action_space}')
        numbers = [str(action) for action in range(self.env.action_space.n)]
        self.actions = ACTIONS.get(self.family, numbers)
        self.total = 0.0

    def begin(self):
        self.observation, _ = self.env.reset(seed=self.seed)
        if self.is_terse:
            return self.text()
        rules = RULES.get(self.family, f"You play {self.family}.")
        return f"{rules}\nAnswer with one of these actions: {', '.join(self.actions)}.\n\n{self.text()}"

    def step(self, answer):
        action = self.action_in(answer)
        if action is None:
            self.total += self.invalid_reward
            text = self.text() if self.is_terse else f"That is none of {', '.join(self.actions)}.\n\n{self.text()}"
            return text, self.invalid_reward, False, {"action_is_valid": False}
        self.observation, reward, terminated, truncated, _ = self.env.step(action)
        reward = float(reward)
        self.total += reward
        # Gymnasium does not say what a success is. Who gets to the end of the cliff has done it, for minus one a step.
        success = terminated and (reward > 0 or self.family == "CliffWalking")
        info = {"action": self.actions[action], "action_is_valid": True, "success": success}
        return self.text(), reward, terminated or truncated, {**info, "truncated": truncated and not terminated}

    def evaluate(self):
        """The return of the episode, for clients that do not add up the rewards of its steps."""
        return self.total

    def close(self):
        self.env.close()

    def action_in(self, answer):
        """The number of the last action that the answer names; an action may be given by its number too."""
        words = re.findall(r"\w+", answer.lower())
        for word in reversed(words):
            for number, name in enumerate(self.actions):
                if word in (name.lower(), str(number)):
                    return number
        return None

    def text(self):
        if self.env.render_mode != "ansi":
            return str(self.observation)
        drawing = COLOURED.sub(lambda found: COLOURS.get(found[1], "@").replace("@", found[2]), self.env.render())
        return LAST_ACTION.sub("", drawing).strip()
