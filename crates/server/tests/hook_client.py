"""Posts events with the hook's own client, and lets its logs come in several orders: see .ci/hook."""

import asyncio, json, os, subprocess, sys, tempfile
from pathlib import Path
from amplifier_module_hook_context_intelligence.handlers.logging_handler import LoggingHandler, _DestinationDispatcher

PROGRAM = sys.argv[1]
NAMES = ["session:start", "prompt:submit", "tool:pre", "tool:post", "llm:response", "session:end"]
# Python writes these in other bytes than the server.
ODD = {"é": "Straße 日本 🚀\u2028", "numbers": [1, 1.0, 1e22, 1e-7, 2**53, -0.0, True, None], "nul": "a\x00b", "nest": {"b": [], "a": {}}}


class Machine:
    """A home with session folders and a store. It also is the hook's resolver of its configuration."""

    working_dir, workspace, parent_id = "/srv/shop", "-srv-shop", ""

    def __init__(self, folder, server):
        self.server, self.home, self.root = server, folder / "home", folder / "amplifier"
        self.home.mkdir(parents=True)

    def session_dir(self, session):
        return self.root / "projects" / self.workspace / "sessions" / session / "context-intelligence"

    def run(self, *arguments, store=None):
        environment = {"HOME": str(self.home), "PATH": os.environ["PATH"], "AMPLIFIER_SESSIONS_TOKEN": self.server.token}
        command = [PROGRAM, "--store", store or f"sqlite:{self.home / 's.sqlite'}", "--user", "ana", "--embedding", "none", *arguments, "--json"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode in (0, 3), (arguments, done.stderr)
        return json.loads(done.stdout)

    def push(self):
        self.run("sync", "--root", str(self.root), "--push", self.server.url, "--yes")

    def sync(self):
        self.run("sync", "--root", str(self.root), store=self.server.store)


class Server:
    def __init__(self, folder):
        folder.mkdir()
        self.store = f"sqlite:{folder / 's.sqlite'}"
        command = [PROGRAM, "--store", self.store, "--user", "ana", "--embedding", "none", "serve", "--listen", "127.0.0.1:0"]
        environment = {"HOME": str(folder), "PATH": os.environ["PATH"]}
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().strip()
        self.token = (folder / ".amplifier" / "server-token").read_text().strip()


class Client:
    """The hook in one session."""

    def __init__(self, machine, session):
        self.machine, self.session, self.count = machine, session, 0
        self.handler = LoggingHandler(machine)
        options = {"dispatch_timeout": 10.0, "failure_threshold": 3, "queue_capacity": 256, "close_drain_timeout": 10.0}
        dispatcher = _DestinationDispatcher(
            "ours", machine.server.url, machine.server.token, machine.workspace, working_dir=machine.working_dir, **options)
        self.posting, self.handler._dispatchers = [dispatcher], [dispatcher]

    async def events(self, count, posts=lambda number: True, **data):
        for number in range(self.count, self.count + count):
            timestamp = f"2026-01-05T08:{number // 60:02}:{number % 60:02}.123456+00:00"
            event = {"session_id": self.session, "timestamp": timestamp, "n": number, **(ODD if number % 2 else {}), **data}
            self.handler._dispatchers = self.posting if posts(number) else []
            await self.handler(NAMES[number % len(NAMES)], event)
        self.count += count
        await asyncio.wait_for(self.posting[0]._queue.join(), 60)

    def check(self, what, host, without=()):
        """Each event of the log is in the store of the server once, with its data, and nothing is superseded."""
        log = (self.machine.session_dir(self.session) / "events.jsonl").read_text().splitlines()
        wanted = [line for line in map(json.loads, log) if line["data"]["n"] not in without]
        shown = lambda how: self.machine.run("events", how, "--session", self.session, "--limit", "10000", store=self.machine.server.store)["events"]
        stored = sorted(shown("--full"), key=lambda event: event["line"]["data"]["n"])
        # As text, because 1 and 1.0 are equal.
        text = lambda lines: [json.dumps(line, sort_keys=True) for line in lines]
        assert text(event["line"] for event in stored) == text(wanted), f"{what}: {len(stored)} of {len(wanted)} events"
        assert shown("--superseded") == [], f"{what}: superseded events"
        assert all((event["host_id"] == "unknown") == (host == "unknown") for event in stored), f"{what}: host"
        print(f"{what}: {len(stored)} events")


async def orders(machine, name, log):
    client = Client(machine, f"{name}-first")
    await client.events(30, posts=lambda number: number % 5 > 0)
    client.check(f"{name}: posted", "unknown", without=range(0, 30, 5))
    for what in ("the log", "the log again"):
        log(machine), client.check(f"{name}: posted, then {what}", "known")

    client = Client(machine, f"{name}-later")
    await client.events(10, posts=lambda number: False)
    log(machine)
    await client.events(20)
    log(machine), client.check(f"{name}: the log, then posted, then the log", "known")

    client = Client(machine, f"{name}-half")
    await client.events(10)
    path = machine.session_dir(client.session) / "events.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-40]), log(machine), path.write_bytes(whole)
    client.check(f"{name}: half a line in the log", "known")
    # The server refuses it, and the events after it must not wait.
    await client.events(1, text="ß" * 9_000_000)
    await client.events(10)
    client.check(f"{name}: an event that is too large", "known", without=[10])
    log(machine), client.check(f"{name}: the log with it", "known")


async def main():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "server")
        try:
            for log in (Machine.push, Machine.sync):
                await orders(Machine(Path(folder) / log.__name__, server), log.__name__, log)
        finally:
            server.process.terminate(), server.process.wait()

asyncio.run(main())
