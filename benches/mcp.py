#!/usr/bin/env python3
"""Do the tools for agents find the right session, and how many tokens does that take? Beside grep on the same files.

    benches/mcp.py --bin target/release/amplifier-sessions --coding DIR [--questions N]

DIR   amplifier/projects/... and questions.jsonl with {"question", "sessions"} lines

Both are asked without a language model, always in the same way, with at most three calls a question:

- tools: `search` with the question; then its next page, twice. A session is named if the answer has an address in it.
- grep: the lines that have the question; the files that have all its words of four letters or more; the lines with its
  longest word. A session is named if the output has the path of its file. Of each output, the first 8,000 characters
  count, as of an answer of 2,000 tokens.

Prints how often a right session is named within one, two and three calls, how often it is among the first five sessions
that are named, how many sessions were named until then, and how many tokens were read (four characters each). Then, for
each question whose first answer names a right session, the tokens of `read` at that address. Python's standard library
only.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

LIMIT = 8_000


class Tools:
    """A client of `amplifier-sessions mcp`, on its pipes."""

    def __init__(self, program, environment):
        self.process = subprocess.Popen([program, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True)
        self.last, self.times = 0, {}
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method, parameters):
        self.last += 1
        self.send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": parameters})
        while (answer := json.loads(self.process.stdout.readline())).get("id") != self.last:
            pass
        return answer["result"]

    def call(self, tool, **arguments):
        begin = time.perf_counter()
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        self.times.setdefault(tool, []).append(time.perf_counter() - begin)
        return "".join(part["text"] for part in answer["content"])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def addresses(text):
    """The addresses in an answer, in order, each once."""
    return list(dict.fromkeys(re.findall(r"[0-9A-Za-z][0-9A-Za-z._-]*#\d+", text)))


def is_of(address, sessions):
    return any(session.startswith(address.split("#")[0]) for session in sessions)


def search_pages(tools, question):
    """Yields the text of each answer, and the addresses in it."""
    arguments = {"query": question}
    for _ in range(3):
        text = tools.call("search", **arguments)
        yield text, addresses(text)
        more = re.search(r"after[=:]\s*[\"`']?([^\s\"`',]+)", text)
        if not more:
            return
        arguments["after"] = more.group(1)


def grep(*arguments):
    done = subprocess.run(["grep", *arguments], capture_output=True, text=True, errors="replace", env={**os.environ, "LC_ALL": "C"})
    return done.stdout


def files_with_all(words, root):
    found = [str(root)]
    for word in words:
        found = grep("-rliF", "-e", word, *found).splitlines()
        if not found:
            break
    return "\n".join(found)


def grep_pages(root, question):
    words = [word for word in dict.fromkeys(re.findall(r"\w{4,}", question.lower()))] or question.split()[:1]
    longest = max(words, key=len)
    for search in (
        lambda: grep("-rnoiE", "-m", "3", ".{0,80}" + re.escape(question) + ".{0,80}", str(root)),
        lambda: files_with_all(words, root),
        lambda: grep("-rnoiE", "-m", "3", ".{0,80}" + re.escape(longest) + ".{0,80}", str(root)),
    ):
        text = search().replace(str(root) + "/", "")[:LIMIT]
        yield text, list(dict.fromkeys(re.findall(r"sessions/([^/]+)/", text)))


def measure(name, questions, pages):
    """Asks all questions, and prints a row of a Markdown table."""
    found_at, named, early, tokens, first = [], [], 0, [], {}
    for question in questions:
        found, seen, read = None, [], 0
        for number, (text, sessions) in enumerate(pages(question["question"]), 1):
            read += len(text) / 4
            right = next((one for one in sessions if is_of(one, question["sessions"])), None)
            seen += [one for one in dict.fromkeys(one.split("#")[0] for one in sessions) if one not in seen]
            if right:
                found = number
                early += any(is_of(one, question["sessions"]) for one in seen[:5])
                first.setdefault(question["question"], (number, right))
                break
        found_at.append(found)
        named.append(len(seen))
        tokens.append(read)
    within = [sum(1 for one in found_at if one and one <= calls) / len(questions) for calls in (1, 2, 3)]
    cells = [f"{share:.3f}" for share in [*within, early / len(questions)]] + [f"{statistics.mean(named):.1f}", f"{statistics.mean(tokens):,.0f}"]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return first


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=os.path.abspath)
    parser.add_argument("--coding", required=True, type=pathlib.Path)
    parser.add_argument("--questions", type=int, help="only the first N")
    args = parser.parse_args()
    with open(args.coding / "questions.jsonl") as file:
        questions = [json.loads(line) for line in file][: args.questions]
    root = args.coding / "amplifier"
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "AMPLIFIER_SESSIONS_STORE": f"sqlite:{folder}/store.sqlite"}
        subprocess.run([args.bin, "sync", "--root", str(root)], env=environment, check=True, capture_output=True)
        tools = Tools(args.bin, environment)
        print(f"{len(questions)} questions\n")
        print("| asked with | within 1 call | 2 calls | 3 calls | among the first 5 | sessions named | tokens read |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        first = measure("`search`", questions, lambda question: search_pages(tools, question))
        read = [len(tools.call("read", address=address)) / 4 for calls, address in first.values() if calls == 1]
        measure("`grep`", questions, lambda question: grep_pages(root / "projects", question))
        print(f"\n`read` of the right address: {statistics.mean(read):,.0f} tokens ({len(read)} calls)")
        for tool, times in tools.times.items():
            times.sort()
            median, most = statistics.median(times), times[int(len(times) * 0.95)]
            print(f"`{tool}`: median {median * 1000:.0f} ms, 95 of 100 calls under {most * 1000:.0f} ms")
        tools.close()


if __name__ == "__main__":
    main()
