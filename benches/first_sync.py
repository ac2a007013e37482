#!/usr/bin/env python3
"""Measures a large installation: the first sync, beside reading the files and beside parsing and inserting their lines;
restore and verify; and how soon a line that is written can be searched while `watch` runs.

    benches/first_sync.py --bin target/release/amplifier-sessions [--dir DIR] [--sessions 5000] [--megabytes 2000]

Generates the sessions in DIR/root, unless they are there already, and keeps them if --dir is given. With
--yardstick 'cargo bench -p amplifier-session-storage --' the baseline is Rust instead of Python. --log-megabytes 1000
adds a session with an event log of that size, to which single lines are appended. Prints Markdown tables. Needs only
Python's standard library.
"""
import argparse, ast, datetime, json, os, pathlib, random, re, resource, shlex, shutil, signal, sqlite3, subprocess, sys, sysconfig, tempfile, time

TOOLS = ["bash", "read_file", "edit_file", "grep", "web_fetch"]
EVENTS = ["llm:request", "content_block:start", "content_block:end", "provider:request", "hooks:log"]


class Corpus:
    """Sessions with the text of Python's documentation: a fifth of the bytes are transcripts, the rest events."""

    def __init__(self, root, seed=7):
        self.root, self.random = pathlib.Path(root), random.Random(seed)
        self.text = documentation()

    def words(self, size):
        start = self.random.randrange(max(1, len(self.text) - size))
        return self.text[start:start + size]

    def size(self, mean):
        """A length around `mean`, with a long tail."""
        return int(min(mean * 40, max(40, self.random.lognormvariate(0, 1) * mean * 0.6)))

    def session(self, project, name, size, turns=None):
        folder = self.root / "projects" / project / "sessions" / name
        folder.mkdir(parents=True, exist_ok=True)
        turns = turns or max(1, int(size // 40_000))
        at = datetime.datetime(2026, 1, 5) + datetime.timedelta(minutes=self.random.randrange(100_000))
        with open(folder / "transcript.jsonl", "w") as transcript, open(folder / "events.jsonl", "w") as events:
            def event(name, **data):
                nonlocal at
                at += datetime.timedelta(milliseconds=self.random.randrange(20, 3_000))
                line = {"ts": at.isoformat(timespec="milliseconds") + "Z", "lvl": "INFO", "event": name, "data": data}
                return events.write(json.dumps(line) + "\n")

            def message(**line):
                return transcript.write(json.dumps(line) + "\n")

            event("session:start")
            for turn in range(turns):
                prompt, call = self.words(self.size(200)), f"toolu_{self.random.getrandbits(96):024x}"
                tool = self.random.choice(TOOLS)
                event("prompt:submit", prompt=prompt)
                message(role="user", content=prompt)
                written, wanted = 0, 0.8 * size / turns
                while written < wanted:
                    written += event(self.random.choice(EVENTS), model="claude-sonnet-4", payload=self.words(self.size(4_000)))
                event("llm:response", model="claude-sonnet-4", usage={"input_tokens": 900, "output_tokens": 80})
                thinking, part = self.words(self.size(400)), 0.2 * size / turns
                message(role="assistant", content=[
                    {"type": "thinking", "thinking": thinking},
                    {"type": "tool_call", "id": call, "name": tool, "input": {"path": f"src/{turn}.py"}}])
                event("tool:pre", tool_name=tool, tool_call_id=call)
                event("tool:post", tool_name=tool, tool_call_id=call)
                message(role="tool", tool_call_id=call, content=self.words(self.size(part * 0.6)))
                message(role="assistant", content=self.words(self.size(part * 0.25)))
        (folder / "metadata.json").write_text(json.dumps({"session_id": name, "created": at.isoformat() + "Z"}))
        return folder

    def write(self, sessions, size):
        for number in range(sessions):
            self.session(f"-home-ana-project{number % 20}", f"{self.random.getrandbits(128):032x}", self.size(size / sessions) * 0.85)


def documentation():
    texts = []
    for path in sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        tree = ast.parse(path.read_text("utf-8", "replace"))
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
        texts += [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, documented)]
    return re.sub(r"\s+", " ", " ".join(texts)) * 3


def measured(command, **options):
    """Runs a command, and returns its seconds, its peak memory in MB, and its output."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, **options)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{command} exits {process.returncode}")
        out.seek(0)
        return seconds, used.ru_maxrss / 1024, out.read().decode()


def insert_lines(root, database):
    """The yardstick: parses each line and inserts it unchanged, in one transaction per file."""
    connection = sqlite3.connect(database, isolation_level=None)
    connection.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                             "CREATE TABLE lines (file, sequence, raw, PRIMARY KEY (file, sequence));")
    for number, path in enumerate(sorted(pathlib.Path(root).glob("projects/*/sessions/*/*.jsonl"))):
        connection.execute("BEGIN")
        with open(path, "rb") as lines:
            for sequence, line in enumerate(lines):
                json.loads(line)
                connection.execute("INSERT INTO lines VALUES (?, ?, ?)", (number, sequence, line.decode()))
        connection.execute("COMMIT")


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder, self.root = args, pathlib.Path(folder), pathlib.Path(folder) / "root"
        self.base = [os.path.abspath(args.bin), "--user", "bench"]
        self.environment = {**os.environ, "HOME": str(self.folder / "home")}
        (self.folder / "home").mkdir(exist_ok=True)
        self.megabytes = 0

    def program(self, store, *rest, embedding="none"):
        return [*self.base, "--store", f"sqlite:{store}", "--embedding", embedding, *rest]

    def run(self, *arguments, **named):
        return measured(self.program(*arguments, **named), env=self.environment, stderr=subprocess.DEVNULL)

    def row(self, what, seconds, peak=None, megabytes=None):
        rate = f"{(megabytes or self.megabytes) / seconds:,.0f} MB/s"
        print(f"| {what} | {seconds:,.2f} s | {rate} | {f'{peak:,.0f} MB' if peak else ''} |", flush=True)

    def generate(self):
        if not (self.root / "made").exists():
            corpus = Corpus(self.root)
            corpus.write(self.args.sessions, self.args.megabytes * 1_000_000)
            (self.root / "made").touch()
        files = [file for file in self.root.glob("projects/*/sessions/*/*") if file.is_file()]
        self.megabytes = sum(file.stat().st_size for file in files) / 1e6
        print(f"{len({file.parent for file in files}):,} sessions, {self.megabytes:,.0f} MB\n")
        # Settled files are not read again.
        for file in files:
            os.utime(file, (1_767_600_000, 1_767_600_000))

    def first_sync(self):
        print("| what | time | | peak memory |\n| --- | --- | --- | --- |")
        cat = f"find {shlex.quote(str(self.root / 'projects'))} -type f -print0 | xargs -0 cat > {os.devnull}"
        measured(["sh", "-c", cat])
        self.row("`cat` of the files (in the page cache)", measured(["sh", "-c", cat])[0])
        if self.args.yardstick:
            output = measured([*shlex.split(self.args.yardstick), "yardstick", "--root", str(self.root)])[2]
            self.row("baseline: parse the lines and insert them (Rust)", float(re.search(r"\d+\.\d+", output)[0]))
        else:
            child = [sys.executable, __file__, "--insert", str(self.root), str(self.folder / "yardstick.sqlite")]
            seconds, peak, _ = measured(child)
            self.row("baseline: parse the lines and insert them (Python)", seconds, peak)
        for embedding in self.args.embedding:
            store = self.folder / f"{embedding}.sqlite"
            seconds, peak, _ = self.run(store, "sync", "--root", str(self.root), embedding=embedding)
            self.row(f"first sync, `--embedding {embedding}`", seconds, peak)
        self.store = self.folder / f"{self.args.embedding[0]}.sqlite"
        seconds, peak, _ = self.run(self.store, "sync", "--root", str(self.root))
        print(f"| sync again, nothing changed | {seconds * 1000:,.0f} ms | | {peak:,.0f} MB |")

    def restore_and_verify(self):
        to = self.folder / "restored"
        seconds, peak, _ = self.run(self.store, "restore", "--to", str(to))
        self.row("`restore` of all sessions", seconds, peak)
        shutil.rmtree(to)
        for arguments in (["verify"], ["sync", "--verify"]):
            known = subprocess.run([*self.base, *arguments, "--help"], capture_output=True)
            rooted = b"--root" in known.stdout
            if known.returncode:
                print(f"| `{' '.join(arguments)}`: this program has no such command | | | |")
                continue
            seconds, peak, _ = self.run(self.store, *arguments, *(["--root", str(self.root)] if rooted else []))
            self.row(f"`{' '.join(arguments)}`", seconds, peak)

    def appended(self):
        """Syncs after one line was appended to a large log, and to a long transcript."""
        size = self.args.log_megabytes
        if not size:
            return
        root = self.folder / "large"
        folder = Corpus(root).session("p", "large", size * 1_000_000 / 0.8, turns=2_000)
        store = self.folder / "large.sqlite"
        seconds, peak, _ = self.run(store, "sync", "--root", str(root))
        self.row(f"first sync of one session with a log of {size} MB", seconds, peak, size / 0.8)
        lines = {"events.jsonl": '{"ts":"2027-01-01T00:00:00Z","event":"hooks:log","data":{}}\n',
                 "transcript.jsonl": '{"role":"user","content":"one more"}\n'}
        for name, line in lines.items():
            times = []
            for _ in range(5):
                with open(folder / name, "a") as file:
                    file.write(line)
                times.append(self.run(store, "sync", "--root", str(root))[:2])
            seconds, peak = sorted(times)[len(times) // 2]
            print(f"| sync after one line was appended to its `{name}` | {seconds * 1000:,.0f} ms | | {peak:,.0f} MB |")

    def watch(self):
        """The time from the write of a line to the moment when a search in another process would find it."""
        command = self.program(self.store, "watch", "--root", str(self.root), "--log-format", "json")
        process = subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            for line in process.stderr:
                if json.loads(line).get("complete"):
                    break
            # What it prints from now on is not read, but must not fill the pipe.
            drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
            latencies = self.latencies()
            status = pathlib.Path(f"/proc/{process.pid}/status")
            peak = re.search(r"VmHWM:\s+(\d+)", status.read_text()) if status.exists() else None
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
        drain.wait()
        part = lambda of: latencies[min(len(latencies) - 1, int(of * len(latencies)))] * 1000
        print(f"\n| `watch`, {len(latencies)} lines | p50 | p99 | longest | peak memory |\n| --- | --- | --- | --- | --- |")
        peak = f"{int(peak[1]) / 1024:,.0f} MB" if peak else ""
        print(f"| from the write until a search finds it | {part(.5):,.0f} ms | {part(.99):,.0f} ms | {part(1):,.0f} ms | {peak} |")

    def latencies(self):
        transcripts, pick = sorted(self.root.glob("projects/*/sessions/*/transcript.jsonl")), random.Random(1)
        connection, found = sqlite3.connect(f"file:{self.store}?mode=ro", uri=True), []
        count = "SELECT message_count FROM sessions WHERE user_id = 'bench' AND session_id = ?"
        for number in range(self.args.writes):
            path = pick.choice(transcripts)
            session, needle = [path.parent.name], f"needle{os.getpid()}x{number}"
            before = connection.execute(count, session).fetchone()[0]
            with open(path, "a") as file:
                file.write(json.dumps({"role": "user", "content": f"Where is {needle}?"}) + "\n")
            start = time.perf_counter()
            while connection.execute(count, session).fetchone()[0] == before:
                if time.perf_counter() - start > 60:
                    raise SystemExit(f"{path} is not synced after a minute")
                time.sleep(0.002)
            found.append(time.perf_counter() - start)
            if number % 10 == 0:
                search = self.program(self.store, "search", needle, "--mode", "full-text", "--no-refresh", "--json")
                answer = json.loads(subprocess.run(search, env=self.environment, capture_output=True, check=True).stdout)
                assert answer["results"][0]["session_id"] == session[0], needle
            time.sleep(pick.random() * self.args.pause)
        return sorted(found)


def main():
    if sys.argv[1:2] == ["--insert"]:
        return insert_lines(*sys.argv[2:4])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--dir", help="where to put everything; by default a temporary folder")
    parser.add_argument("--sessions", type=int, default=5000)
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--log-megabytes", type=int, default=0)
    parser.add_argument("--writes", type=int, default=200, help="lines to write while `watch` runs")
    parser.add_argument("--pause", type=float, default=0.5, help="the longest pause between two of them, in seconds")
    parser.add_argument("--embedding", nargs="+", default=["none", "local"])
    parser.add_argument("--yardstick", help="a command for the baseline; `yardstick --root DIR` is appended")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(args.dir or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.sqlite*"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        bench = Bench(args, folder)
        bench.generate()
        bench.first_sync()
        bench.restore_and_verify()
        bench.appended()
        bench.watch()
    print(f"\nLargest process: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:,.0f} MB.")


if __name__ == "__main__":
    main()
