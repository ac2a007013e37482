#!/usr/bin/env python3
"""Measures what a PostgreSQL server does for a store: rows, bytes, and its CPU time for syncs and searches.

    .ci/with-postgres benches/postgres.py --bin target/release/amplifier-sessions --root DIR --queries FILE [--clients N]

The program needs the feature `postgres`. DIR contains projects/. FILE is a JSON object with lists of queries under
`keyword` and `semantic`. Every search is a process with a connection of its own. Prints a Markdown table. Python's
standard library only.
"""
import argparse, concurrent.futures, json, os, pathlib, statistics, subprocess, time

ROWS = """SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM transcripts), (SELECT count(*) FROM events),
    (SELECT count(*) FROM transcript_vectors), (SELECT count(*) FROM postings)"""
BYTES = """SELECT relname, pg_total_relation_size(oid) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'amplifier_sessions'::regnamespace ORDER BY 2 DESC"""


class Server:
    def __init__(self):
        self.url = os.environ["AMPLIFIER_TEST_POSTGRES_URL"]
        self.psql = pathlib.Path(os.environ["AMPLIFIER_TEST_POSTGRES_PROGRAMS"], "psql")
        folder = self.ask("SHOW data_directory")[0][0]
        self.process = int(pathlib.Path(folder, "postmaster.pid").read_text().split()[0])

    def ask(self, sql):
        command = [self.psql, self.url, "-qXAt", "-F", "\t", "-c", "SET search_path TO amplifier_sessions, public", "-c", sql]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        return [line.split("\t") for line in output.splitlines()]

    def cpu(self):
        """The CPU time of connections that have ended, in seconds."""
        fields = pathlib.Path(f"/proc/{self.process}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--root", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--clients", type=int, default=4, help="how many searches run at once")
    parser.add_argument("--searches", type=int, default=200, help="how many searches of each kind")
    args = parser.parse_args()
    server = Server()
    base = [os.path.abspath(args.bin), "--store", server.url, "--user", "bench"]

    def run(arguments):
        start = time.perf_counter()
        done = subprocess.run(base + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode not in (0, 3):
            raise SystemExit(f"{arguments} exits {done.returncode}: {done.stderr.strip()[-300:]}")
        return time.perf_counter() - start

    def measured(work):
        start, cpu = time.perf_counter(), server.cpu()
        answer = work()
        return answer, time.perf_counter() - start, server.cpu() - cpu

    print("| what | wall | CPU of the server |\n| --- | --- | --- |")
    for name in ("first sync", "sync again, nothing changed"):
        _, wall, cpu = measured(lambda: run(["sync", "--embedding", "local", "--root", args.root]))
        print(f"| {name} | {wall:.2f} s | {cpu:.2f} s |")
    server.ask("VACUUM ANALYZE")
    queries = json.loads(pathlib.Path(args.queries).read_text())
    asked = queries["keyword"] + queries.get("semantic", [])
    asked = [asked[at % len(asked)] for at in range(args.searches)]
    with concurrent.futures.ThreadPoolExecutor(args.clients) as pool:
        for mode in ("full-text", "semantic", "hybrid"):
            search = lambda query: run(["search", query, "--mode", mode, "--json", "--no-refresh"])
            walls, wall, cpu = measured(lambda: list(pool.map(search, asked)))
            each = f"p50 {statistics.median(walls) * 1000:.0f} ms, {len(walls) / wall:.0f} a second"
            print(f"| `{mode}`, {args.clients} processes at once | {each} | {cpu / len(walls) * 1000:.1f} ms |")
    sessions, messages, events, vectors, postings = server.ask(ROWS)[0]
    print(f"\n{sessions} sessions, {messages} messages, {events} events, {vectors} vectors, {postings} rows of postings.\n")
    tables = [(name, int(size)) for name, size in server.ask(BYTES)]
    print("| table | MB |\n| --- | --- |")
    for name, size in tables[:6]:
        print(f"| `{name}` | {size / 1e6:.1f} |")
    print(f"| all | {sum(size for _, size in tables) / 1e6:.1f} |")


if __name__ == "__main__":
    main()
