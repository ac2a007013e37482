"""Calls the tools of `amplifier-sessions mcp` with the official SDK, with and without a session of the protocol.

Arguments: the program. Uses the sample sessions of the program, in a temporary home folder.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from mcp import Client, StdioServerParameters

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
TOOLS = ["search", "read", "list", "events", "statistics"]


def check(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


async def use(server, mode):
    async with Client(server, mode=mode) as client:
        tools = (await client.list_tools()).tools
        check([tool.name for tool in tools] == TOOLS, tools)
        check(all(tool.annotations.read_only_hint for tool in tools), tools)

        async def text(tool, **arguments):
            result = await client.call_tool(tool, arguments)
            check(not result.is_error and result.structured_content is None, result)
            return result.content[0].text

        found = await text("search", query="two workers take the same row", mode="full_text")
        check("c1d84e7a#12" in found and "\n> " in found, found)
        check("SKIP LOCKED" in await text("read", address="c1d84e7a#12"), "read")
        check("c1d84e7a" in await text("list", limit=50, budget="12000"), "list")
        check("tool:" in await text("events"), "events")
        check("tokens" in await text("statistics"), "statistics")

        result = await client.call_tool("list", {"format": "json", "limit": 2})
        check(json.loads(result.content[0].text) == result.structured_content, result)
        result = await client.call_tool("search", {"query": "x", "scope": "all"})
        check(result.is_error and result.content[0].text.startswith("error: scope: "), result)


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as home:
        shutil.copytree(SAMPLES / "projects", Path(home, ".amplifier", "projects"))
        env = {"HOME": home, "USER": "dana", "PATH": os.environ["PATH"], "TZ": "UTC"}
        env["LD_LIBRARY_PATH"] = os.environ.get("LD_LIBRARY_PATH", "")
        subprocess.run([program, "sync", "--embedding", "none"], env=env, check=True, capture_output=True)
        server = StdioServerParameters(command=program, args=["mcp"], env=env)
        for mode in ["legacy", "auto"]:
            asyncio.run(use(server, mode))
            print(f"{mode}: all tools answer")


main()
