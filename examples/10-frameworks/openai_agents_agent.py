"""An agent of the OpenAI Agents SDK with a tool, as it may have been written before anybody thought of training its model.

Needs `pip install openai-agents`; the client reads OPENAI_BASE_URL and OPENAI_API_KEY, and calls the responses API.
"""

from agents import Agent, Runner, function_tool, set_tracing_disabled

from calculator import calculate, question

# Traces would be sent to OpenAI.
set_tracing_disabled(True)


@function_tool
def calculator(expression: str) -> str:
    """Evaluates an arithmetic expression."""
    return calculate(expression)


agent = Agent(name="mathematician", model="policy", tools=[calculator])

result = Runner.run_sync(agent, question(), max_turns=4)
print(result.final_output)
