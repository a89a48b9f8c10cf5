"""A LangGraph agent with a tool, as it may have been written before anybody thought of training its model.

Needs `pip install langgraph langchain-openai`; the client reads OPENAI_BASE_URL and OPENAI_API_KEY.
"""

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from calculator import calculate, question


@tool
def calculator(expression: str) -> str:
    """Evaluates an arithmetic expression."""
    return calculate(expression)


model = ChatOpenAI(model="policy", max_retries=0).bind_tools([calculator])


def answer(state: MessagesState):
    return {"messages": [model.invoke(state["messages"])]}


graph = (
    StateGraph(MessagesState)
    .add_node("answer", answer)
    .add_node("tools", ToolNode([calculator]))
    .add_edge(START, "answer")
    .add_conditional_edges("answer", tools_condition)
    .add_edge("tools", "answer")
    .compile()
)

final = graph.invoke({"messages": [("user", question())]}, {"recursion_limit": 10})
print(final["messages"][-1].content)
