#!/usr/bin/env python3
"""Measures and checks push, pull and live changes, with a server on this machine.

    benches/push.py --bin target/release/amplifier-sessions live [--lines 200]
    benches/push.py --bin target/release/amplifier-sessions append [--megabytes 200]
    benches/push.py --bin target/release/amplifier-sessions first --root DIR [--rounds 3]
    benches/push.py --bin target/release/amplifier-sessions vanish [--seconds 60]
    benches/push.py --bin target/release/amplifier-sessions kill [--rounds 50] [--users 20]

`live` appends lines while `watch --push` runs, and takes the time until /v1/live announces each of them to another client.
`append` pushes a large session, appends a line to it, pushes again, and prints the bytes that were sent.
`first` stores the sessions of DIR (a folder that contains projects/) in a new store, and pushes them to an empty server.
`vanish` kills the server for a while, when machines push, another follows, and all go on to write, and fails if they do not catch up.
`kill` kills the server at a random moment while many users push at the same time, again and again, and fails if a line is lost
whose push was acknowledged, or if one is there twice.

Linux only. Python's standard library only.
"""
import argparse, base64, json, os, pathlib, random, socket, sqlite3, statistics, subprocess, sys, tempfile, time

WORDS = "parser token index store sync session message event vector search window cache build test error".split()


def line(rng, role="user", words=20):
    return json.dumps({"role": role, "content": f"{rng.getrandbits(64):016x} " + " ".join(rng.choices(WORDS, k=words))}) + "\n"


class Home:
    """A folder with a store, and session folders."""

    def __init__(self, program, folder, user):
        self.program, self.folder, self.user = program, folder, user
        self.root, self.store = folder / ".amplifier", folder / "sessions.sqlite"
        (self.root / "projects").mkdir(parents=True)
        self.environment = {"HOME": str(folder), "USER": user, "PATH": os.environ["PATH"]}

    def command(self, *arguments):
        base = [self.program, "--store", f"sqlite:{self.store}", "--embedding", "none"]
        return [*base, *map(str, arguments)]

    def run(self, *arguments, token=None, check=True):
        environment = {**self.environment, **({"AMPLIFIER_SESSIONS_TOKEN": token} if token else {})}
        ran = subprocess.run(self.command(*arguments), env=environment, capture_output=True, text=True)
        if check and ran.returncode:
            raise SystemExit(f"{arguments}: {ran.stderr}")
        return ran

    def start(self, *arguments, token=None, **streams):
        environment = {**self.environment, **({"AMPLIFIER_SESSIONS_TOKEN": token} if token else {})}
        return subprocess.Popen(self.command(*arguments), env=environment, text=True, **streams)

    def transcript(self, session):
        folder = self.root / "projects" / "bench" / "sessions" / session
        folder.mkdir(parents=True, exist_ok=True)
        return folder / "transcript.jsonl"

    def lines(self, user):
        """The lines of a user's sessions, as they are stored."""
        connection = sqlite3.connect(f"file:{self.store}?mode=ro", uri=True, timeout=30)
        try:
            rows = connection.execute("SELECT session_id, raw FROM transcripts WHERE user_id = ? ORDER BY session_id, sequence", (user,))
            found = {}
            for session, raw in rows:
                found.setdefault(session, []).append(raw if isinstance(raw, str) else bytes(raw).decode())
            return found
        finally:
            connection.close()


class Server:
    def __init__(self, home):
        self.home, self.address = home, "127.0.0.1:0"
        self.start()

    def start(self):
        self.process = self.home.start("serve", "--listen", self.address, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        url = self.process.stdout.readline().strip()
        if not url:
            raise SystemExit("the server did not start")
        self.address = url.removeprefix("http://")

    def token(self, user):
        return self.home.run("token", "create", "--user", user, "--rights", "read,write").stdout.strip()

    @property
    def url(self):
        return f"http://{self.address}"

    def kill(self):
        self.process.kill()
        self.process.wait()


class Live:
    """A client of /v1/live."""

    def __init__(self, address, token):
        host, _, port = address.partition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /v1/live HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: ams.v1\r\n\r\n".encode()
        )
        self.stream = self.socket.makefile("rb")
        if b"101" not in self.stream.readline():
            raise SystemExit("the server did not accept the socket")
        while self.stream.readline().strip():
            pass

    def send(self, frame, kind=1):
        text, mask = json.dumps(frame).encode() if kind == 1 else frame, os.urandom(4)
        length = bytes([0x80 | len(text)]) if len(text) < 126 else bytes([0xFE]) + len(text).to_bytes(2, "big")
        self.socket.sendall(bytes([0x80 | kind]) + length + mask + bytes(byte ^ mask[n % 4] for n, byte in enumerate(text)))

    def next(self):
        while True:
            head = self.stream.read(2)
            length = head[1] & 0x7F
            if length > 125:
                length = int.from_bytes(self.stream.read(2 if length == 126 else 8), "big")
            text, kind = self.stream.read(length), head[0] & 0x0F
            if kind == 9:
                self.send(text, 10)
            elif kind == 1:
                return json.loads(text)
            elif kind == 8:
                raise SystemExit(f"the server closed the socket: {text}")


def live(args, folder, rng):
    server = Server(Home(args.bin, folder / "server", "host"))
    laptop = Home(args.bin, folder / "laptop", "ana")
    token = server.token("ana")
    for number in range(20):
        laptop.transcript(f"s{number}").write_text(line(rng))
    watching = laptop.start("watch", "--root", laptop.root, "--push", server.url, token=token, stderr=open(folder / "log", "w"))
    try:
        reader, counts, taken = Live(server.address, token), {f"s{number}": 1 for number in range(20)}, []
        while len(server.home.lines("ana")) < len(counts):
            time.sleep(0.2)
        reader.send({"type": "subscribe", "id": 1, "scope": "own", "of": ["messages"]})
        assert reader.next()["type"] == "ready"
        for _ in range(args.lines):
            session = rng.choice(list(counts))
            with open(laptop.transcript(session), "a") as transcript:
                transcript.write(line(rng))
            written, counts[session] = time.monotonic(), counts[session] + 1
            while True:
                frame = reader.next()
                rows = frame.get("messages", {})
                if frame["type"] == "change" and frame["session"]["session_id"] == session and rows["count"] == counts[session]:
                    assert rows["from"] == counts[session] - 1, frame
                    break
            taken.append(time.monotonic() - written)
            time.sleep(rng.random() * 0.5)
    finally:
        watching.terminate()
        watching.wait(30)
        server.kill()
    taken.sort()
    p50, p99 = statistics.median(taken), taken[int(0.99 * (len(taken) - 1))]
    print(f"From a written line to its frame: p50 {p50 * 1e3:.0f} ms, p99 {p99 * 1e3:.0f} ms, longest {taken[-1] * 1e3:.0f} ms ({len(taken)} lines).")
    return p99 < 2


def append(args, folder, rng):
    server = Server(Home(args.bin, folder / "server", "host"))
    laptop = Home(args.bin, folder / "laptop", "ana")
    token, size = server.token("ana"), args.megabytes * 1_000_000
    with open(laptop.transcript("large"), "w") as transcript:
        while transcript.tell() < size:
            transcript.write(line(rng, rng.choice(["user", "assistant"]), words=rng.randint(100, 3_000)))
    push = lambda: json.loads(laptop.run("--json", "sync", "--root", laptop.root, "--push", server.url, token=token).stdout)["push"][0]
    begun = time.monotonic()
    first, took = push(), time.monotonic() - begun
    print(f"First push: {first['messages']:,} messages, {first['bytes'] / 1e6:.1f} MB before compression, in {took:.1f} s with the sync.")
    with open(laptop.transcript("large"), "a") as transcript:
        transcript.write(line(rng))
    laptop.run("sync", "--root", laptop.root)
    begun = time.monotonic()
    second, took = push(), time.monotonic() - begun
    print(f"After a line was appended: {second['messages']} message, {second['bytes']:,} bytes before compression, in {took:.2f} s.")
    same = server.home.run("--json", "sessions", "--user", "ana", check=False).returncode == 0
    server.kill()
    return second["messages"] == 1 and second["bytes"] < 10_000 and same


def first(args, folder, rng):
    """The rate of a first push, as a share of the rate of a first sync."""
    shares = []
    for number in range(args.rounds):
        server = Server(Home(args.bin, folder / f"server-{number}", "host"))
        laptop, token = Home(args.bin, folder / f"laptop-{number}", "ana"), server.token("ana")

        def timed(*arguments):
            begun = time.monotonic()
            printed = laptop.run("--json", "sync", "--root", args.root, *arguments, token=token).stdout
            return time.monotonic() - begun, json.loads(printed)

        stored, _ = timed()
        unchanged, _ = timed()
        pushed, printed = timed("--push", server.url)
        messages = printed["push"][0]["messages"]
        server.kill()
        shares.append(stored / (pushed - unchanged))
        print(
            f"{messages:,} messages: sync {stored:.1f} s ({messages / stored:,.0f} a second), "
            f"push {pushed - unchanged:.1f} s ({messages / (pushed - unchanged):,.0f} a second), {shares[-1]:.2f} of the rate"
        )
    return statistics.median(shares) >= 0.7


def vanish(args, folder, rng):
    server = Server(Home(args.bin, folder / "server", "host"))
    laptops = [Home(args.bin, folder / f"u{number}", f"u{number}") for number in range(args.users)]
    tokens = [server.token(home.user) for home in laptops]
    other = Home(args.bin, folder / "other", laptops[0].user)
    written = {home.user: {f"{home.user}-s{number}": [] for number in range(3)} for home in laptops}

    def write(seconds):
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            for home in laptops:
                session = rng.choice(list(written[home.user]))
                text = line(rng)
                written[home.user][session].append(text.strip())
                with open(home.transcript(session), "a") as transcript:
                    transcript.write(text)
            time.sleep(0.2)

    def caught_up():
        stored = all(server.home.lines(user) == sessions for user, sessions in written.items())
        return stored and other.lines(other.user) == written[other.user]

    write(1)
    log = open(folder / "log", "w")
    running = [home.start("watch", "--root", home.root, "--push", server.url, token=token, stderr=log) for home, token in zip(laptops, tokens)]
    # `other` has no session folders of its own.
    following = other.start("copy", "--from", server.url, "--to", f"sqlite:{other.store}", "--follow", token=tokens[0], stderr=log)
    try:
        write(10)
        server.kill()
        write(args.seconds)
        before = sum(len(lines) for sessions in written.values() for lines in sessions.values())
        server.start()
        write(5)
        begun = time.monotonic()
        while not caught_up():
            if time.monotonic() > begun + 180:
                raise SystemExit(f"machines have not caught up after 3 minutes: {(folder / 'log').read_text()[-2000:]}")
            time.sleep(0.2)
        took = time.monotonic() - begun
    finally:
        for process in [*running, following]:
            process.terminate()
        for process in [*running, following]:
            process.wait(30)
        server.kill()
    print(f"{len(laptops)} machines wrote {before:,} lines until the server came back after {args.seconds} s; {took + 5:.1f} s later, it had all lines once, and so had the machine that follows.")
    return True


def kill(args, folder, rng):
    server = Server(Home(args.bin, folder / "server", "host"))
    homes = [Home(args.bin, folder / f"u{number}", f"u{number}") for number in range(args.users)]
    tokens = {home.user: server.token(home.user) for home in homes}
    written = {home.user: {f"{home.user}-s{number}": [] for number in range(3)} for home in homes}
    acknowledged = {home.user: {} for home in homes}
    failed = 0
    for number in range(args.rounds):
        pushes = []
        for home in homes:
            for session, lines in written[home.user].items():
                new = [line(rng) for _ in range(rng.randint(0, 40))] or [line(rng)]
                lines.extend(text.strip() for text in new)
                with open(home.transcript(session), "a") as transcript:
                    transcript.writelines(new)
            pushes.append((home, home.start("--json", "sync", "--root", home.root, "--push", server.url, token=tokens[home.user], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)))
        time.sleep(rng.random() * args.longest)
        server.kill()
        server.start()
        for home, process in pushes:
            process.communicate()
            if process.returncode == 0:
                acknowledged[home.user] = {session: len(lines) for session, lines in written[home.user].items()}
            failed += process.returncode != 0
        check(server, written, acknowledged)
        print(f"\rround {number + 1}: {failed} of {(number + 1) * len(homes)} pushes were cut off", end="", file=sys.stderr)
    print(file=sys.stderr)
    for home in homes:
        home.run("sync", "--root", home.root, "--push", server.url, token=tokens[home.user])
        acknowledged[home.user] = {session: len(lines) for session, lines in written[home.user].items()}
    check(server, written, acknowledged)
    server.kill()
    lines = sum(len(lines) for sessions in written.values() for lines in sessions.values())
    print(f"{args.rounds} kills during {args.users} pushes: {failed} pushes were cut off; all {lines:,} lines are on the server, once and in order.")
    return True


def check(server, written, acknowledged):
    for user, sessions in written.items():
        stored = server.home.lines(user)
        for session, lines in sessions.items():
            there, least = stored.get(session, []), acknowledged[user].get(session, 0)
            if there != lines[: len(there)]:
                raise SystemExit(f"{session}: the server has other lines")
            if len(there) < least:
                raise SystemExit(f"{session}: the server has {len(there)} lines, and has acknowledged {least}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--seed", type=int, default=7)
    modes = parser.add_subparsers(dest="mode", required=True)
    modes.add_parser("live").add_argument("--lines", type=int, default=200)
    modes.add_parser("append").add_argument("--megabytes", type=int, default=200)
    pushing = modes.add_parser("first")
    pushing.add_argument("--root", required=True, type=os.path.abspath)
    pushing.add_argument("--rounds", type=int, default=3)
    vanishing = modes.add_parser("vanish")
    vanishing.add_argument("--seconds", type=int, default=60)
    vanishing.add_argument("--users", type=int, default=8)
    killing = modes.add_parser("kill")
    killing.add_argument("--rounds", type=int, default=50)
    killing.add_argument("--users", type=int, default=20)
    killing.add_argument("--longest", type=float, default=1.5, help="seconds from the beginning of the pushes to the kill, at most")
    args = parser.parse_args()
    args.bin = os.path.abspath(args.bin)
    with tempfile.TemporaryDirectory() as name:
        is_right = {"live": live, "append": append, "first": first, "vanish": vanish, "kill": kill}[args.mode](args, pathlib.Path(name), random.Random(args.seed))
    raise SystemExit(0 if is_right else 1)


if __name__ == "__main__":
    main()
