#!/usr/bin/env python3
"""Times searches, each a whole process, at rest and while a sync into the same store runs.

    benches/search_while_syncing.py --bin target/release/amplifier-sessions --root DIR --queries FILE [--base DIR]

FILE is a JSON object with lists of queries under `keyword` and `semantic`. DIR contains projects/. The store begins with
the sessions below --base, by default those of --root as another user; then the searches are timed, then again and again
while --root is synced. Prints a Markdown table. Python's standard library only.
"""
import argparse, itertools, json, os, pathlib, statistics, subprocess, tempfile, time


def row(what, searches):
    walls = sorted(wall for wall, _ in searches)
    cpu = statistics.median(cpu for _, cpu in searches)
    p50, p95 = statistics.median(walls), walls[int(0.95 * (len(walls) - 1))]
    print(f"| {what} | {len(walls)} | {p50 * 1000:.0f} ms | {p95 * 1000:.0f} ms | {walls[-1] * 1000:.0f} ms | {cpu * 1000:.0f} ms |")
    return p95


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--root", required=True, help="what is synced while searches are timed")
    parser.add_argument("--queries", required=True)
    parser.add_argument("--base", help="what the store holds before")
    parser.add_argument("--mode", default="hybrid")
    parser.add_argument("--pause", type=float, default=0.2, help="seconds between two searches")
    args = parser.parse_args()
    asked = json.loads(pathlib.Path(args.queries).read_text())
    asked = asked["keyword"] + asked.get("semantic", [])

    with tempfile.TemporaryDirectory() as folder:
        def command(user, *rest):
            store = f"sqlite:{folder}/store.sqlite"
            return [os.path.abspath(args.bin), "--store", store, "--user", user, "--embedding", "local", *rest]

        def search(query):
            start = time.perf_counter()
            process = subprocess.Popen(
                command("reader", "search", query, "--mode", args.mode, "--json"), stdout=subprocess.DEVNULL
            )
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode not in (0, 3):
                raise SystemExit(f"a search exits {process.returncode}")
            return time.perf_counter() - start, used.ru_utime + used.ru_stime

        subprocess.run(command("reader", "sync", "--root", args.base or args.root), check=True, stdout=subprocess.DEVNULL)
        at_rest = []
        for query in asked:
            at_rest.append(search(query))
            time.sleep(args.pause / 4)
        sync = subprocess.Popen(command("writer", "sync", "--root", args.root), stdout=subprocess.DEVNULL)
        start, while_syncing = time.perf_counter(), []
        for query in itertools.cycle(asked):
            took = search(query)
            if sync.poll() is not None:
                break
            while_syncing.append(took)
            time.sleep(args.pause)
        seconds = time.perf_counter() - start

    print("| searches | how many | p50 | p95 | longest | CPU |\n| --- | --- | --- | --- | --- | --- |")
    rest = row("at rest", at_rest)
    busy = row("while a sync runs", while_syncing)
    print(f"\nThe sync took {seconds:.1f} s. p95 while it runs is {busy / rest:.1f} times that at rest.")


if __name__ == "__main__":
    main()
