#!/usr/bin/env python3
"""A team on one server: people search, write and follow changes at the same time.

    benches/load.py --bin PROGRAM --root DIR [--store URL] [--embedding local|none] [--seconds 60] [--rates 50,25,100,200]

PROGRAM   the release program, with the features of the store
DIR       folders of users with projects/, and queries.json, as `gen_corpus.py DIR --users 100` makes
URL       a store to be filled; a new SQLite file by default. One that has sessions is taken as it is

The load is open: each request has a time at which it is due, and its latency counts from then, also if the client was
still busy. For each rate of searches a second, 200 clients search (words, phrases, fields, hybrid), 20 write a message and
three events a second, and 20 follow one writer each over a WebSocket. Before that, one client searches alone: the idle
latencies of the same run. Prints a Markdown table. Linux only; Python's standard library only.
"""
import argparse, asyncio, json, os, pathlib, tempfile, time, urllib.parse

from served import Client, Producer, Refused, Served, Socket, own_processor, percentiles

SEARCHING, WRITING = 200, 20


class Load:
    def __init__(self, served, queries, tokens):
        self.served, self.queries, self.tokens = served, queries, tokens
        # A store may have sessions of an earlier run.
        self.round, self.name = 0, time.strftime("%Y%m%d%H%M%S")

    async def idle(self, count=150):
        """Latencies of one client that asks again and again."""
        client, times = Client(self.served.port, self.tokens[0]), []
        for number in range(count):
            began = time.perf_counter()
            await client.ask("GET", self.path(number))
            times.append(time.perf_counter() - began)
            await asyncio.sleep(0.02)
        client.close()
        return times

    def path(self, number):
        query, mode = self.queries[number % len(self.queries)]
        return f"/v1/search?limit=10&mode={mode}&q={urllib.parse.quote(query)}"

    async def run(self, rate, seconds):
        """One round: the latencies by kind, and what went wrong."""
        self.times = {"search": [], "write": [], "live": []}
        self.failures, self.refused = [], 0
        self.round += 1
        self.begins = time.perf_counter() + 1
        self.ends = self.begins + seconds
        period = SEARCHING / rate
        tasks = [self.search(number, period) for number in range(SEARCHING)]
        for number in range(WRITING):
            producer = Producer(self.served.port, self.tokens[number], f"live-{self.name}-{self.round}-{number}")
            socket = Socket(self.served.port, self.tokens[number])
            await socket.open()
            await socket.subscribe(scope="own")
            tasks += [self.write(producer, number / WRITING), self.follow(socket, producer)]
        usage = (self.served.processor(), own_processor(), time.perf_counter())
        watching = asyncio.create_task(self.watch())
        await asyncio.gather(*tasks)
        spent = time.perf_counter() - usage[2]
        watching.cancel()
        return {"server": (self.served.processor() - usage[0]) / spent,
                "generator": (own_processor() - usage[1]) / spent, "memory": self.most_memory}

    async def watch(self):
        self.most_memory = 0
        while True:
            self.most_memory = max(self.most_memory, self.served.memory())
            await asyncio.sleep(0.5)

    async def at(self, due):
        await asyncio.sleep(max(0, due - time.perf_counter()))

    async def timed(self, kind, due, request):
        try:
            await request
        except Refused as refusal:
            if refusal.status != 503:
                self.failures.append(f"{kind}: {refusal}")
            self.refused += 1
        except (OSError, EOFError) as error:
            self.failures.append(f"{kind}: {error!r}")
        else:
            self.times[kind].append(time.perf_counter() - due)

    async def search(self, number, period):
        client = Client(self.served.port, self.tokens[number % len(self.tokens)])
        due = self.begins + period * number / SEARCHING
        asked = number
        while due < self.ends:
            await self.at(due)
            await self.timed("search", due, client.ask("GET", self.path(asked)))
            asked, due = asked + SEARCHING + 1, due + period
        client.close()

    async def write(self, producer, offset):
        due, producer.due = self.begins + offset, {}
        while due < self.ends:
            await self.at(due)
            producer.due[producer.messages + 1] = due
            await self.timed("write", due, producer.message())
            await self.timed("write", due + 0.5, self.later(due + 0.5, producer))
            due += 1
        producer.client.close()

    async def later(self, due, producer):
        await self.at(due)
        await producer.three_events()

    async def follow(self, socket, producer):
        seen = 0
        while time.perf_counter() < self.ends + 2:
            try:
                frame = await asyncio.wait_for(socket.receive(), max(0.01, self.ends + 2 - time.perf_counter()))
            except TimeoutError:
                break
            if frame is None or frame["type"] != "change":
                self.failures.append(f"live: {frame}")
                break
            count = frame["messages"]["count"]
            now = time.perf_counter()
            self.times["live"] += [now - producer.due[number] for number in range(seen + 1, count + 1)]
            seen = count
        if seen != producer.messages:
            self.failures.append(f"live: {seen} of {producer.messages} messages were announced")
        socket.close()


def fill(served, root):
    """Stores the sessions of each folder for a user of its own, unless the store has sessions. The users."""
    folders = sorted(folder for folder in root.iterdir() if (folder / "projects").is_dir())
    if not folders:
        raise SystemExit(f"{root} has no folders of users; make them with gen_corpus.py --users 100")
    users = {f"user-{number}": folder for number, folder in enumerate(folders)}
    if not served.has_sessions():
        began = time.perf_counter()
        for user, folder in users.items():
            served.run("sync", "--root", str(folder), user=user)
        print(f"filled in {time.perf_counter() - began:.0f} s")
    return list(users)


async def measure(args, load):
    idle = await load.idle()
    print("\n| searches a second | kind | requests | p50 | p95 | p99 | longest | refused | failed |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    print(f"| alone | search | {len(idle)} | {' | '.join(percentiles(idle))} | 0 | 0 |")
    failed, usage = [], []
    for rate in args.rates:
        used = await load.run(rate, args.seconds)
        for kind, times in load.times.items():
            count = sum(failure.startswith(kind) for failure in load.failures)
            refused = load.refused if kind == "search" else 0
            print(f"| {rate} | {kind} | {len(times)} | {' | '.join(percentiles(times))} | {refused} | {count} |", flush=True)
        usage.append((rate, used))
        failed += load.failures
        await asyncio.sleep(5)
        after = await load.idle(50)
        print(f"| alone, 5 s after | search | {len(after)} | {' | '.join(percentiles(after))} | 0 | 0 |", flush=True)
    print("\n| searches a second | processors of the server | of the generator | memory without mapped files |")
    print("| --- | --- | --- | --- |")
    for rate, used in usage:
        print(f"| {rate} | {used['server']:.2f} | {used['generator']:.2f} | {used['memory']:.0f} MB |")
    print("\ntimes in ms; a search refused with 503 is none")
    for failure in failed[:20]:
        print(failure)
    raise SystemExit(bool(failed))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=os.path.abspath)
    parser.add_argument("--root", required=True, type=pathlib.Path)
    parser.add_argument("--store")
    parser.add_argument("--embedding", default="local")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rates", type=lambda text: [int(rate) for rate in text.split(",")], default=[50, 25, 100, 200])
    args = parser.parse_args()
    asked = json.loads((args.root / "queries.json").read_text())
    keyword, semantic = asked["keyword"], asked["semantic"]
    queries = []
    for number, query in enumerate(keyword):
        queries.append((query, "full_text"))
        queries.append((semantic[number % len(semantic)], "hybrid"))
        queries.append((f"role:user {query}", "full_text"))
        queries.append((query, "hybrid"))
    with tempfile.TemporaryDirectory() as folder:
        store = args.store or f"sqlite:{folder}/sessions.sqlite"
        served = Served(args.bin, store, folder, args.embedding)
        users = fill(served, args.root)
        tokens = [served.token(user) for user in users]
        served.start()
        try:
            asyncio.run(measure(args, Load(served, queries, tokens)))
        finally:
            served.stop()


if __name__ == "__main__":
    main()
