"""An AgentScope agent with a tool, as it may have been written before anybody thought of training its model.

Needs `pip install agentscope`; OPENAI_BASE_URL and OPENAI_API_KEY say where the model is.
"""

import asyncio
import os

from agentscope.agent import Agent, InjectionConfig
from agentscope.credential import OpenAICredential
from agentscope.message import UserMsg
from agentscope.model import OpenAIChatModel
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.tool import FunctionTool, Toolkit

from calculator import calculate, question


def calculator(expression: str) -> str:
    """Evaluates an arithmetic expression.

    Args:
        expression (str): The expression.
    """
    return calculate(expression)


allowed = PermissionDecision(behavior=PermissionBehavior.ALLOW, message="It only computes.")
model = OpenAIChatModel(
    credential=OpenAICredential(
        api_key=os.environ["OPENAI_API_KEY"], base_url=os.environ["OPENAI_BASE_URL"]
    ),
    model="policy",
    max_retries=0,
)
agent = Agent(
    name="mathematician",
    system_prompt="",
    model=model,
    toolkit=Toolkit(tools=[FunctionTool(calculator, permission=allowed)]),
    # The time of day would make each prompt another one, and the model of this example does not know its words.
    injection_config=InjectionConfig(inject_runtime_state=False),
)


async def main() -> None:
    reply = await agent.reply(UserMsg(name="user", content=question()))
    print(reply.get_text_content())


asyncio.run(main())
