"""A server under measurement, and light clients for it: benches/load.py and benches/faults.py use them.

Python's standard library only. The clients do as little as possible, because they share the processors with the server.
"""
import asyncio, base64, json, os, pathlib, random, resource, signal, subprocess, time, urllib.parse


class Served:
    """A running `serve` with a store, and its tokens."""

    def __init__(self, program, store, folder, embedding="none", options=()):
        self.program, self.store, self.folder = program, store, pathlib.Path(folder)
        self.embedding, self.options = embedding, list(options)
        self.tokens_file = self.folder / "tokens.toml"
        # Nothing of the machine is read.
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "USER": "bench"}

    def command(self, *rest, user="bench"):
        options = ["--store", self.store, "--user", user, "--embedding", self.embedding]
        return [self.program, *options, *rest]

    def run(self, *rest, user="bench"):
        done = subprocess.run(self.command(*rest, user=user), env=self.environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(rest)} exits {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def has_sessions(self):
        listed = self.command("sessions", "--scope", "all", "--limit", "1", "--no-refresh")
        return subprocess.run(listed, env=self.environment, capture_output=True).returncode == 0

    def token(self, user, *options):
        """A new token of a user."""
        return self.run("token", "create", "--tokens", str(self.tokens_file), *options, user=user).strip()

    def start(self):
        arguments = self.command("serve", "--listen", "127.0.0.1:0", "--tokens", str(self.tokens_file), *self.options)
        self.log = open(self.folder / "serve.log", "ab")
        self.process = subprocess.Popen(arguments, env=self.environment, stdout=subprocess.PIPE, stderr=self.log)
        line = self.process.stdout.readline().decode()
        address = urllib.parse.urlsplit(line.split()[-1] if line.split() else "")
        if not address.port:
            raise SystemExit(f"the server did not start: {line!r}, {self.folder / 'serve.log'}")
        self.port = address.port
        return self

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def memory(self):
        """Resident memory without mapped files, in MB."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon")) / 1000

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def processor(self):
        """Processor time so far, in seconds."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def own_processor():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status, body):
        super().__init__(f"{status}: {body[:200]!r}")
        self.status, self.body = status, body


class Client:
    """One connection that is kept, for one token."""

    def __init__(self, port, token):
        self.port, self.token, self.streams = port, token, None

    async def open(self):
        self.streams = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)

    def close(self):
        if self.streams:
            self.streams[1].close()
        self.streams = None

    def head(self, method, path, headers=(), length=None):
        lines = [f"{method} {path} HTTP/1.1", f"host: 127.0.0.1:{self.port}", f"authorization: Bearer {self.token}", *headers]
        if length is not None:
            lines.append(f"content-length: {length}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    async def ask(self, method, path, body=None, kind="application/jsonl"):
        """The body of a successful answer."""
        if self.streams is None:
            await self.open()
        reader, writer = self.streams
        try:
            headers = [f"content-type: {kind}"] if body is not None else []
            writer.write(self.head(method, path, headers, None if body is None else len(body)) + (body or b""))
            status, answered = await self.answer(reader)
        except (OSError, EOFError, ValueError):
            self.close()
            raise
        if not 200 <= status < 300:
            raise Refused(status, answered)
        return answered

    async def answer(self, reader):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        status = int(head[0].split()[1])
        fields = dict(line.split(": ", 1) for line in head[1:] if ": " in line)
        if "chunked" not in fields.get("transfer-encoding", ""):
            return status, await reader.readexactly(int(fields.get("content-length", 0)))
        parts = []
        while size := int(await reader.readline(), 16):
            parts.append(await reader.readexactly(size))
            await reader.readline()
        await reader.readline()
        return status, b"".join(parts)

    async def json(self, method, path, body=None, kind="application/jsonl"):
        return json.loads(await self.ask(method, path, body, kind))


class Socket(Client):
    """A WebSocket to /v1/live."""

    async def open(self):
        await super().open()
        reader, writer = self.streams
        key = base64.b64encode(random.randbytes(16)).decode()
        headers = ["upgrade: websocket", "connection: upgrade", "sec-websocket-version: 13",
                   f"sec-websocket-key: {key}", "sec-websocket-protocol: ams.v1"]
        writer.write(self.head("GET", "/v1/live", headers))
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if " 101 " not in head.split("\r\n")[0]:
            raise Refused(int(head.split()[1]), head.encode())

    def send(self, frame, code=0x1):
        """A frame, masked as clients must."""
        data = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
        length = bytes([0x80 | len(data)]) if len(data) < 126 else bytes([0x80 | 126]) + len(data).to_bytes(2, "big")
        mask = random.randbytes(4)
        masked = bytes(byte ^ mask[number % 4] for number, byte in enumerate(data))
        self.streams[1].write(bytes([0x80 | code]) + length + mask + masked)

    async def receive(self):
        """The next frame. None after the server has closed; its code is in `closed`."""
        reader = self.streams[0]
        while True:
            first, second = await reader.readexactly(2)
            length = second & 0x7F
            if length >= 126:
                length = int.from_bytes(await reader.readexactly(2 if length == 126 else 8), "big")
            data = await reader.readexactly(length)
            code = first & 0xF
            if code == 0x8:
                self.closed = int.from_bytes(data[:2], "big")
                return None
            if code == 0x9:
                self.send(data, 0xA)
            elif code == 0x1:
                return json.loads(data)

    async def subscribe(self, **fields):
        self.send({"type": "subscribe", "id": 1, **fields})
        frame = await self.receive()
        if frame is None or frame["type"] != "ready":
            raise Refused(0, str(frame).encode())


class Producer:
    """A session whose lines are sent while they are written."""

    def __init__(self, port, token, session):
        self.client, self.session = Client(port, token), session
        self.messages = self.events = 0

    async def put(self, kind, lines, start):
        text = "\n".join(json.dumps(line) for line in lines).encode()
        path = f"/v1/sessions/{self.session}/{kind}?from={start}&project=bench&host=bench"
        while True:
            try:
                return await self.client.json("PUT", path, text)
            except Refused as refusal:
                # Above 50 requests a second of a token.
                if refusal.status != 429:
                    raise
                await asyncio.sleep(0.1)

    async def message(self):
        number = self.messages
        line = {"role": "user" if number % 2 == 0 else "assistant", "content": f"message {number} of {self.session}"}
        await self.put("transcript", [line], number)
        self.messages += 1

    async def three_events(self):
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        lines = [{"ts": stamp, "event": "tool:post", "session_id": self.session,
                  "data": {"tool_name": "bash", "number": self.events + number}} for number in range(3)]
        await self.put("events", lines, self.events)
        self.events += 3


def percentiles(times):
    """Median, 95th and 99th percentile, and the longest, in milliseconds."""
    times = sorted(times)
    if not times:
        return ["-"] * 4
    return [f"{times[int(part * (len(times) - 1))] * 1e3:.0f}" for part in (0.5, 0.95, 0.99, 1)]
