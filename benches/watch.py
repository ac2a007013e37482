#!/usr/bin/env python3
"""Measures `watch`: memory after many appended lines, the time from write to row, and CPU at rest.

    benches/watch.py --bin target/release/amplifier-sessions [--sessions 2000] [--appends 50000] [--idle-sessions 5000]

Writes sessions to a temporary folder, lets `watch` read them, appends lines to sessions at random, and then lets it idle.
Prints Markdown tables. Linux only, because it reads /proc. Python's standard library only.
"""
import argparse, json, os, pathlib, random, sqlite3, statistics, subprocess, tempfile, time

WORDS = "parser token index store sync session message event vector search window cache build test error".split()


def line(rng, role):
    text = " ".join(rng.choices(WORDS, k=rng.randint(8, 60)))
    return json.dumps({"role": role, "content": text, "metadata": {"timestamp": "2026-01-05T08:00:00Z"}}) + "\n"


def session(root, number):
    return root / "projects" / f"p{number % 20}" / "sessions" / f"{number:08x}-0000-4000-8000-000000000000"


def write_sessions(root, rng, numbers):
    for number in numbers:
        folder = session(root, number)
        folder.mkdir(parents=True)
        (folder / "transcript.jsonl").write_text(line(rng, "user") + line(rng, "assistant"))
        (folder / "metadata.json").write_text(json.dumps({"name": f"session {number}"}))


class Watch:
    def __init__(self, program, folder, root, embedding):
        self.store = folder / "store.sqlite"
        command = [program, "--store", f"sqlite:{self.store}", "--user", "bench", "--embedding", embedding]
        self.log = open(folder / "log", "w")
        self.process = subprocess.Popen(command + ["watch", "--root", str(root)], stderr=self.log, env={**os.environ, "HOME": str(folder)})

    def status(self):
        fields = {}
        for entry in open(f"/proc/{self.process.pid}/status"):
            name, _, value = entry.partition(":")
            if name in ("VmRSS", "RssAnon", "RssFile", "VmHWM", "Threads"):
                fields[name] = int(value.split()[0])
        return fields

    def cpu(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rows(self, query="SELECT coalesce(sum(message_count), 0) FROM sessions"):
        try:
            connection = sqlite3.connect(f"file:{self.store}?mode=ro", uri=True, timeout=30)
            try:
                return connection.execute(query).fetchone()[0]
            finally:
                connection.close()
        except sqlite3.OperationalError:
            return 0

    def until(self, rows, pause=0.5):
        begun = time.monotonic()
        while self.rows() < rows:
            if self.process.poll() is not None:
                raise SystemExit(f"watch ended: see {self.log.name}")
            if time.monotonic() - begun > 1800:
                raise SystemExit(f"after half an hour there are {self.rows()} of {rows} messages")
            time.sleep(pause)

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def megabytes(kilobytes):
    return f"{kilobytes / 1024:.0f} MB"


def memory(what, status):
    print(f"| {what} | {megabytes(status['VmRSS'])} | {megabytes(status['RssAnon'])} | {megabytes(status['RssFile'])} | {megabytes(status['VmHWM'])} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--sessions", type=int, default=2_000)
    parser.add_argument("--appends", type=int, default=50_000)
    parser.add_argument("--rate", type=float, default=500, help="appended lines per second")
    parser.add_argument("--latencies", type=int, default=100, help="how often to time one line")
    parser.add_argument("--idle-sessions", type=int, default=5_000)
    parser.add_argument("--idle-seconds", type=float, default=60)
    parser.add_argument("--embedding", default="local")
    args = parser.parse_args()
    rng = random.Random(7)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        root = folder / "root"
        write_sessions(root, rng, range(args.sessions))
        expected = 2 * args.sessions
        watch = Watch(os.path.abspath(args.bin), folder, root, args.embedding)
        try:
            print("| resident memory | in all | private | of files | peak |\n| --- | --- | --- | --- | --- |")
            watch.until(expected)
            time.sleep(12)
            memory(f"after the first sync of {args.sessions:,} sessions", watch.status())
            begun = time.monotonic()
            for n in range(args.appends):
                number = rng.randrange(args.sessions)
                with open(session(root, number) / "transcript.jsonl", "a") as transcript:
                    transcript.write(line(rng, rng.choice(["user", "assistant"])))
                if n % 100 == 0:
                    time.sleep(max(0, begun + n / args.rate - time.monotonic()))
                if n % 10_000 == 9_999:
                    memory(f"while lines are appended: {n + 1:,}", watch.status())
            expected += args.appends
            watch.until(expected)
            caught_up = time.monotonic() - begun
            time.sleep(60)
            memory(f"a minute after {args.appends:,} appended lines", watch.status())
            if args.embedding != "none":
                while watch.rows("SELECT count(*) FROM transcripts WHERE vectors IN (0, 3)") > 0:
                    time.sleep(1)

            times = []
            for _ in range(args.latencies):
                number = rng.randrange(args.sessions)
                with open(session(root, number) / "transcript.jsonl", "a") as transcript:
                    transcript.write(line(rng, "user"))
                written, expected = time.monotonic(), expected + 1
                watch.until(expected, 0.005)
                times.append(time.monotonic() - written)
                time.sleep(rng.random())

            write_sessions(root, rng, range(args.sessions, args.idle_sessions))
            expected += 2 * max(0, args.idle_sessions - args.sessions)
            watch.until(expected)
            time.sleep(30)
            memory(f"at rest, {args.idle_sessions:,} sessions", watch.status())
            before = watch.cpu()
            time.sleep(args.idle_seconds)
            at_rest = (watch.cpu() - before) / args.idle_seconds
            print(f"\nThe lines were stored {caught_up:.0f} s after the first was written, at {args.rate:.0f} per second.")
            if times:
                times.sort()
                p50, p99 = statistics.median(times), times[int(0.99 * (len(times) - 1))]
                print(f"From write to row: p50 {p50 * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms.")
            print(f"CPU at rest: {100 * at_rest:.2f} % of a core over {args.idle_seconds:.0f} s. Threads: {watch.status()['Threads']}.")
            for file in sorted(folder.iterdir()):
                if file.name != "root":
                    size = file.stat().st_size if file.is_file() else sum(part.stat().st_size for part in file.rglob("*") if part.is_file())
                    print(f"- {file.name}: {size / 1e6:.1f} MB")
        finally:
            watch.stop()


if __name__ == "__main__":
    main()
