"""The tools of the examples, called as their frameworks call them."""

import asyncio
import json
import runpy
import sys

from agents.tool_context import ToolContext

examples, to = sys.argv[1:3]


async def call(tool, **given):
    """Call it as a run of the framework does."""
    arguments = json.dumps(given)
    context = ToolContext(None, tool_name=tool.name, tool_call_id="1", tool_arguments=arguments)
    return await tool.on_invoke_tool(context, arguments)


chain = runpy.run_path(f"{examples}/langchain_tool.py")["pay"]
agents = runpy.run_path(f"{examples}/openai_agents_tool.py")["pay"]
said = {
    "langchain": [
        chain.invoke({"payment_name": f"invoice-{amount}", "to": to, "amount": amount}) for amount in ("5", "500")
    ],
    "schema": sorted(chain.args),
    "agents": asyncio.run(call(agents, payment_name="invoice-5", to=to, amount="6")),
    "described": "name for THIS payment" in agents.description,
}
print(json.dumps(said))
