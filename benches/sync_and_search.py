#!/usr/bin/env python3
"""Times whole processes of the program: syncing a folder of sessions, and searching it.

    benches/sync_and_search.py --bin target/release/amplifier-sessions --root DIR [--queries FILE] [--runs N]

DIR contains projects/. FILE is a JSON object with lists of queries under `keyword` and `semantic`; without it the words
of the first messages are asked for. Prints a Markdown table. Python's standard library only.
"""
import argparse, json, os, pathlib, resource, statistics, subprocess, tempfile, time


def run(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 3):
        raise SystemExit(f"{command} exits {done.returncode}: {done.stderr.strip()[-300:]}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def first_words(root, count=50):
    files = sorted(pathlib.Path(root).glob("projects/*/sessions/*/transcript.jsonl"))[:count]
    texts = [json.loads(next(file.open(encoding="utf-8")))["content"] for file in files]
    return [" ".join(text.split()[:6]) for text in texts if isinstance(text, str)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--root", required=True)
    parser.add_argument("--queries")
    parser.add_argument("--runs", type=int, default=3, help="how often each sync is made; the median counts")
    args = parser.parse_args()
    program = os.path.abspath(args.bin)

    print("| what | wall | CPU |\n| --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        stores = {}
        for embedding in ("none", "local"):
            times = []
            for n in range(args.runs):
                stores[embedding] = f"sqlite:{folder}/{embedding}{n}.sqlite"
                base = [program, "--store", stores[embedding], "--user", "bench", "--embedding", embedding]
                times.append(run(base + ["sync", "--root", args.root])[:2])
            wall, cpu = (statistics.median(column) for column in zip(*times))
            print(f"| sync, `--embedding {embedding}` | {wall:.2f} s | {cpu:.2f} s |")
        base = [program, "--store", stores["local"], "--user", "bench"]
        wall, cpu, _ = run(base + ["sync", "--root", args.root])
        print(f"| sync again, nothing changed | {wall * 1000:.0f} ms | {cpu * 1000:.0f} ms |")

        queries = json.loads(pathlib.Path(args.queries).read_text()) if args.queries else {"keyword": first_words(args.root)}
        asked = queries["keyword"] + queries.get("semantic", [])
        for mode in ("full-text", "semantic", "hybrid"):
            times = sorted(run(base + ["search", query, "--mode", mode, "--json"])[:2] for query in asked)
            walls = [wall for wall, _ in times]
            p50, p95 = statistics.median(walls), walls[int(0.95 * (len(walls) - 1))]
            cpu = statistics.median(cpu for _, cpu in times)
            print(f"| one search, a whole process, `{mode}` | p50 {p50 * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms | {cpu * 1000:.0f} ms |")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        size = os.path.getsize(stores["local"].removeprefix("sqlite:")) / 1e6
        index = sum(file.stat().st_size for file in pathlib.Path(stores["local"].removeprefix("sqlite:") + ".index").rglob("*")) / 1e6
        print(f"\nLargest process: {peak:.0f} MB. Store: {size:.0f} MB, index: {index:.0f} MB.")


if __name__ == "__main__":
    main()
