#!/usr/bin/env python3
"""Many clients at once on one store: some search, some sync, each command a whole process.

    benches/team.py --bin PROGRAM --store URL --root DIR [--searching 32] [--syncing 4] [--seconds 60]

PROGRAM   the release program, with the features of the store
URL       the store, which must hold the sessions below DIR of the user `bench`: benches/scale.py leaves such stores
DIR       contains projects/ and queries.json

Searching clients ask the queries of DIR as `bench`. Each syncing client is a user of its own, and syncs a folder to which
it adds a session before each sync. At the end, every client's rows are verified. Prints a Markdown table, and fails if any
command failed. Python's standard library only.
"""
import argparse, itertools, json, os, pathlib, shutil, subprocess, sys, tempfile, threading, time


class Clients:
    def __init__(self, args):
        self.args, self.end = args, time.perf_counter() + args.seconds
        self.times, self.failed = {"search": [], "sync": []}, []

    def run(self, kind, user, *rest):
        command = [self.args.bin, "--store", self.args.store, "--user", user, "--embedding", "local", *rest]
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        self.times[kind].append(time.perf_counter() - start)
        if done.returncode not in (0, 3):
            self.failed.append(f"{kind} of {user} exits {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def search(self, queries):
        for query in queries:
            if time.perf_counter() > self.end:
                return
            self.run("search", "bench", "search", query, "--json", "--no-refresh")

    def sync(self, number, folder, sessions):
        user = f"client-{number}"
        for session in sessions:
            if time.perf_counter() > self.end:
                break
            target = folder / "projects" / session.parent.parent.name / "sessions" / f"{session.name}-{number}"
            shutil.copytree(session, target)
            self.run("sync", user, "sync", "--root", str(folder))
        verified = json.loads(self.run("sync", user, "verify", "--root", str(folder), "--json"))
        self.times["sync"].pop()
        if verified["difference_count"]:
            self.failed.append(f"{user}: {verified['difference_count']} differences")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=os.path.abspath)
    parser.add_argument("--store", required=True)
    parser.add_argument("--root", required=True, type=pathlib.Path)
    parser.add_argument("--searching", type=int, default=32)
    parser.add_argument("--syncing", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=60)
    args = parser.parse_args()
    asked = json.loads((args.root / "queries.json").read_text())
    asked = asked["keyword"] + asked["semantic"]
    sessions = sorted(path for path in args.root.glob("projects/*/sessions/*") if path.is_dir())
    with tempfile.TemporaryDirectory() as scratch:
        clients = Clients(args)
        threads = []
        for number in range(args.searching):
            queries = itertools.islice(itertools.cycle(asked), number, None)
            threads.append(threading.Thread(target=clients.search, args=(queries,)))
        for number in range(args.syncing):
            folder = pathlib.Path(scratch) / str(number)
            threads.append(threading.Thread(target=clients.sync, args=(number, folder, sessions)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print("| commands | how many | p50 | p95 | p99 | longest |\n| --- | --- | --- | --- | --- | --- |")
    for kind, times in clients.times.items():
        times.sort()
        p50, p95, p99 = (times[int(part * (len(times) - 1))] * 1e3 for part in (0.5, 0.95, 0.99))
        print(f"| {kind} | {len(times)} | {p50:.0f} ms | {p95:.0f} ms | {p99:.0f} ms | {times[-1] * 1e3:.0f} ms |")
    print(f"\n{len(clients.failed)} commands failed")
    for failure in clients.failed[:10]:
        print(failure, file=sys.stderr)
    raise SystemExit(bool(clients.failed))


if __name__ == "__main__":
    main()
