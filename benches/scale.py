#!/usr/bin/env python3
"""How syncing and searching grow with the number of messages.

    benches/scale.py --bin PROGRAM --warm BENCH --corpus CORPUS --dir DIR [--sizes 10000,100000,1000000]
                     [--stores sqlite,duckdb] [--postgres URL] [--users 1,100] [--no-turns] [--yardsticks]
                     [--graph-minutes 30] [--svg FOLDER]

PROGRAM   the release program, with the features of the stores
BENCH     the benchmark of the library: `cargo bench -p amplifier-session-storage --no-run` prints its path
CORPUS    the generator: `cargo build --release -p amplifier-session-testkit --example corpus`
DIR       where sessions and stores are kept; what is there already is used again
URL       a database of a PostgreSQL server: `--stores postgres` makes a schema for each store; needs `psql`

Generates sessions of 50 messages for each number of users, syncs them into each store, and measures: the sync, sizes,
memory, opening, searches of each mode, warm in one process and as whole processes, and the same words searched in the
same files with tantivy alone. --yardsticks also scans the vectors of SQLite stores of one user exactly, as 8-bit codes,
and builds a graph of them (HNSW, 16-bit floats), unless that takes more than --graph-minutes (30); it needs the Python
packages numpy and usearch. Results are appended to DIR/results.jsonl. Prints Markdown tables; --svg also draws the times
of searches in each kind of store, as FOLDER/scale-KIND.svg. Otherwise Python's standard library only.
"""
import argparse, concurrent.futures, itertools, json, math, multiprocessing, os, pathlib, re, shutil, statistics
import subprocess, sys, time

MODES = ("full-text", "semantic", "hybrid")

# The number of vectors that a search asks the index for.
NEAREST = 250


def run(command, **more):
    """The output of a command, and its wall time in seconds and peak memory in MB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **more)
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 3):
        raise SystemExit(f"{command} exits {code}")
    return output, time.perf_counter() - start, used.ru_maxrss / 1024


def size(path):
    path = pathlib.Path(path)
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return path.stat().st_size if path.exists() else 0


def corpora(args, messages, users):
    """A folder of sessions for each user."""
    folder = args.dir / f"sessions-{messages}-{users}"
    names = ["bench"] if users == 1 else [f"user-{n}" for n in range(users)]
    for number, name in enumerate(names):
        if not (folder / name / "queries.json").exists():
            sessions = max(1, messages // users // 50)
            run([args.corpus, str(folder / name), str(sessions), "50", "0", str(3 + number)])
    return {name: folder / name for name in names}


def percentile(times, part):
    times = sorted(times)
    return times[int(part * (len(times) - 1))]


class InFile:
    """A store in a file, with its index beside it."""

    def __init__(self, args, kind, name):
        self.path = args.dir / f"{kind}-{name}" / "store.db"
        self.url = f"{kind}:{self.path}"
        shutil.rmtree(self.path.parent, ignore_errors=True)
        self.path.parent.mkdir(parents=True)

    def bytes(self):
        index = next((path for path in self.path.parent.iterdir() if path.name.endswith(".index")), None)
        return size(self.path), size(index) if index else 0


class InPostgres:
    """A store in a schema of its own. The index of words and that of vectors count as the index."""

    def __init__(self, args, _, name):
        self.server = args.postgres
        self.schema = f"scale_{name.replace('-', '_')}"
        self.url = f"{self.server}?schema={self.schema}"
        self.ask(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")

    def ask(self, sql):
        return run(["psql", self.server, "--quiet", "--tuples-only", "--no-align", "--command", sql])[0]

    def bytes(self):
        whole = f"""SELECT sum(pg_total_relation_size(oid)) FROM pg_class
            WHERE relkind = 'r' AND relnamespace = '{self.schema}'::regnamespace"""
        index = f"""SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class
            WHERE relnamespace = '{self.schema}'::regnamespace
                AND (relname IN ('postings', 'text_blocks') OR relname LIKE '%_nearest_%')"""
        whole, index = (int(self.ask(sql)) for sql in (whole, index))
        return whole - index, index


def measure(args, kind, messages, users):
    roots = corpora(args, messages, users)
    store = (InPostgres if kind == "postgres" else InFile)(args, kind, f"{messages}-{users}")
    base = [args.bin, "--store", store.url, "--embedding", "local"]
    seconds, peak = 0.0, 0.0
    for name, root in roots.items():
        sync = ["sync", "--root", str(root), *(["--no-turns"] if args.no_turns else [])]
        _, wall, memory = run([*base, "--user", name, *sync])
        seconds, peak = seconds + wall, max(peak, memory)
    store_bytes, index_bytes = store.bytes()
    input_bytes = sum(size(root / "projects") for root in roots.values())
    found = {
        "store": kind, "messages": messages, "users": users,
        "sync_s": seconds, "sync_per_s": messages / seconds, "sync_mb": peak,
        "input_mb": input_bytes / 1e6, "store_mb": store_bytes / 1e6, "index_mb": index_bytes / 1e6,
    }
    first = next(iter(roots.values()))
    asked = json.loads((first / "queries.json").read_text())
    asked = asked["keyword"] + asked["semantic"]
    who = [argument for name in roots for argument in ("--user", name)]
    output, _, memory = run([args.warm, "search", "--store", store.url, "--root", str(first), *who])
    found["warm_mb"] = memory
    for name, p50, p95 in re.findall(r"\| (\w+) \| ([\d.]+) ms \| ([\d.]*)", output):
        mode = name.replace("_", "-")
        found[f"{mode}_warm"] = [float(p50), float(p95 or p50)]
    for mode in MODES:
        times, peak = [], 0.0
        for query, name in zip(asked, itertools.cycle(roots)):
            command = [*base, "--user", name, "search", query, "--mode", mode, "--json", "--no-refresh"]
            _, wall, memory = run(command)
            times.append(wall * 1e3)
            peak = max(peak, memory)
        found[f"{mode}_cold"] = [statistics.median(times), percentile(times, 0.95)]
        found[f"{mode}_mb"] = peak
    return found, store


def alone(work, *arguments):
    """The result of a function, called in a process of its own: the peak memory of a program counts that of the process
    that started it."""
    own = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=own) as process:
        return process.submit(work, *arguments).result()


def of_vectors(store, minutes):
    """An exact scan of the vectors of a store, and a graph of them, unless it takes more than `minutes`."""
    import graph_index

    vectors, queries = graph_index.read(store, -1)
    scan = graph_index.scan_times(graph_index.codes_of(vectors), queries, NEAREST)
    found = {"vectors": len(vectors), "scan_warm": [statistics.median(scan), percentile(scan, 0.95)]}
    graph, seconds = graph_index.graph_of(vectors, minutes * 60)
    found |= {"graph_built_s": seconds, "graph_vectors": len(graph)}
    if len(graph) == len(vectors):
        candidates, recall, times = graph_index.graph_times(graph, vectors, queries, NEAREST)
        found |= {"graph_candidates": candidates, "graph_recall": recall}
        found["graph_warm"] = [statistics.median(times), percentile(times, 0.95)]
    return found


def pair(found, name):
    p50, p95 = found[name]
    return f"{p50:.1f}, {p95:.1f}"


def table(results):
    print("| store, users | messages | sync | per second | memory | store and index / input | opening |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for found in results:
        whole = found["store_mb"] + found["index_mb"]
        opening = f"{found['opening_warm'][0]:.0f} ms" if "opening_warm" in found else ""
        print(
            f"| {found['store']}, {found['users']} | {found['messages']:,} | {found['sync_s']:.1f} s "
            f"| {found['sync_per_s']:,.0f} | {found['sync_mb']:.0f} MB "
            f"| {found['store_mb']:,.0f} + {found['index_mb']:,.0f} MB = {whole / found['input_mb']:.2f} "
            f"of {found['input_mb']:,.0f} MB | {opening} |"
        )
    print("\n| store, users | messages | " + " | ".join(f"{mode} warm | cold" for mode in MODES) + " | memory |")
    print("| --- | --- | " + "--- | --- | " * len(MODES) + "--- |")
    for found in results:
        cells = [pair(found, f"{mode}_{how}") for mode in MODES for how in ("warm", "cold")]
        memory = f"{found['hybrid_mb']:.0f} MB"
        print(f"| {found['store']}, {found['users']} | {found['messages']:,} | " + " | ".join(cells) + f" | {memory} |")
    yardsticks(results)


def yardsticks(results):
    print("\n| store, users | messages | tantivy alone | vectors | exact scan | HNSW | candidates, recall | built in |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for found in results:
        cells = [pair(found, "tantivy-alone_warm") if "tantivy-alone_warm" in found else ""]
        if "vectors" in found:
            cells += [f"{found['vectors']:,}", pair(found, "scan_warm")]
        if "graph_warm" in found:
            cells += [pair(found, "graph_warm"), f"{found['graph_candidates']:,}, {found['graph_recall']:.3f}"]
            cells += [f"{found['graph_built_s']:.0f} s"]
        elif "vectors" in found:
            cells += ["", "", f"{found['graph_vectors']:,} of them in {found['graph_built_s']:.0f} s"]
        cells += [""] * (6 - len(cells))
        print(f"| {found['store']}, {found['users']} | {found['messages']:,} | " + " | ".join(cells) + " |")


COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b")


def draw(results, file):
    """The medians of hybrid searches over the number of messages, both logarithmic."""
    width, height, left, top, right, bottom = 720, 420, 60, 30, 190, 50
    lines = {}
    for found in results:
        for how in ("warm", "cold"):
            if f"hybrid_{how}" not in found:
                continue
            users = "1 user" if found["users"] == 1 else f"{found['users']} users"
            name = f"{found['store']}, {users}, {how}"
            lines.setdefault(name, []).append((found["messages"], found[f"hybrid_{how}"][0]))
    sizes = sorted({found["messages"] for found in results})
    values = [value for line in lines.values() for _, value in line]
    low, high = 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values)))
    span = math.log10(sizes[-1] / sizes[0]) or 1
    x = lambda messages: left + (width - left - right) * math.log10(messages / sizes[0]) / span
    y = lambda value: height - bottom - (height - top - bottom) * math.log10(value / low) / math.log10(high / low)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="18">Hybrid search: median in milliseconds over messages in the store</text>',
    ]
    grid = low
    while grid <= high:
        parts.append(f'<line x1="{left}" x2="{width - right}" y1="{y(grid):.1f}" y2="{y(grid):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{y(grid) + 4:.1f}" text-anchor="end">{grid:g}</text>')
        grid *= 10
    for messages in sizes:
        parts.append(f'<text x="{x(messages):.1f}" y="{height - bottom + 20}" text-anchor="middle">{messages:,}</text>')
    ends = sorted((line[-1][1], name) for name, line in lines.items())
    label_y = {}
    for value, name in ends:
        label_y[name] = min([y(value)] + [place - 15 for place in label_y.values()])
    for colour, (name, line) in zip(itertools.cycle(COLOURS), lines.items()):
        dash = ' stroke-dasharray="5 4"' if name.endswith("cold") else ""
        points = " ".join(f"{x(messages):.1f},{y(value):.1f}" for messages, value in line)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        parts.append(f'<text x="{width - right + 8}" y="{label_y[name] + 4:.1f}" fill="{colour}">{name}</text>')
    parts.append("</svg>")
    file.write_text("\n".join(parts) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--bin", "--warm", "--corpus"):
        parser.add_argument(name, required=True, type=os.path.abspath)
    parser.add_argument("--dir", required=True, type=pathlib.Path)
    parser.add_argument("--sizes", default="10000,100000,1000000")
    parser.add_argument("--stores", default="sqlite,duckdb")
    parser.add_argument("--postgres", default="")
    parser.add_argument("--users", default="1,100")
    parser.add_argument("--no-turns", action="store_true", help="do not make the vectors of turns")
    parser.add_argument("--yardsticks", action="store_true", help="also scan vectors exactly, and build a graph")
    parser.add_argument("--graph-minutes", type=float, default=30)
    parser.add_argument("--svg", type=pathlib.Path)
    args = parser.parse_args()
    numbers = lambda text: [int(number) for number in text.split(",")]
    args.dir.mkdir(parents=True, exist_ok=True)
    results = []
    for kind, users, messages in itertools.product(args.stores.split(","), numbers(args.users), numbers(args.sizes)):
        found, store = measure(args, kind, messages, users)
        print(json.dumps(found), file=sys.stderr)
        if args.yardsticks and kind == "sqlite" and users == 1:
            found |= alone(of_vectors, store.path, args.graph_minutes)
        results.append(found)
        with (args.dir / "results.jsonl").open("a") as log:
            log.write(json.dumps(found) + "\n")
    table(results)
    for kind in args.stores.split(",") if args.svg else []:
        draw([found for found in results if found["store"] == kind], args.svg / f"scale-{kind}.svg")


if __name__ == "__main__":
    main()
