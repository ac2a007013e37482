#!/usr/bin/env python3
"""Faults of a server and of its clients: what must hold, checked on the real program.

    benches/faults.py --bin PROGRAM [--store URL] [--minutes 10] [churn peers]

PROGRAM   the release program, with the features of the store
URL       an empty store; a new SQLite file for each check by default

churn     sockets and tokens come and go: 15 s later, memory, descriptors and threads are the same
peers     clients that read slowly or never, send without an end, open 10,000 connections, or send a compression bomb;
          a token that is revoked while its client follows changes; one token that asks for all that it can get, sends
          and reads slowly. Others are answered meanwhile.

For servers that are killed during pushes, see benches/push.py. Exits with 1 if something does not hold. Linux only; Python's standard library only.
"""
import argparse, asyncio, json, os, random, resource, tempfile, time

from served import Client, Producer, Refused, Served, Socket

def holds(what, is_so, detail=""):
    print(f"{'ok  ' if is_so else 'FAIL'} {what}{': ' + str(detail) if detail != '' else ''}", flush=True)
    if not is_so:
        holds.failed = True


holds.failed = False


async def come_and_go(served, token, until):
    """A client that follows changes, reads and leaves, again and again."""
    while time.perf_counter() < until:
        socket, client = Socket(served.port, token), Client(served.port, token)
        await socket.open()
        await socket.subscribe(scope="own")
        await client.ask("GET", "/v1/sessions?limit=5")
        if random.random() < 0.5:
            socket.send(b"\x03\xe8", 0x8)
        client.close()
        socket.close()
        await asyncio.sleep(0.1)


async def check_churn(served, minutes):
    kept = [served.token("ana") for _ in range(8)]
    served.start()
    producer = Producer(served.port, served.token("ana"), "churn")
    # The store does not grow afterwards, so its caches don't either.
    for _ in range(2_000):
        await producer.message()

    async def write(until):
        while time.perf_counter() < until:
            name = json.dumps({"name": f"at {time.perf_counter()}"}).encode()
            await producer.client.ask("PATCH", "/v1/sessions/churn", name, "application/json")
            await asyncio.sleep(0.1)

    async def tokens(until):
        while time.perf_counter() < until:
            token = await asyncio.to_thread(served.token, "ben")
            # A running server knows a new token at once.
            await come_and_go(served, token, min(until, time.perf_counter() + 5))
            await asyncio.to_thread(served.run, "token", "revoke", "--tokens", str(served.tokens_file), token.split("_")[1])

    async def phase(seconds):
        until = time.perf_counter() + seconds
        await asyncio.gather(write(until), tokens(until), *(come_and_go(served, one, until) for one in kept))
        # The server closes connections that are idle for 10 s.
        producer.client.close()
        # Threads that have nothing to do end after 10 s.
        await asyncio.sleep(15)
        return served.memory(), served.descriptors(), served.threads()

    before = await phase(30)
    after = await phase(minutes * 60)
    print(f"     after 30 s: {before[0]:.0f} MB, {before[1]} descriptors, {before[2]} threads")
    print(f"     {minutes} minutes later: {after[0]:.0f} MB, {after[1]} descriptors, {after[2]} threads")
    holds("memory stays the same", after[0] < before[0] * 1.2 + 10)
    holds("descriptors and threads stay the same", after[1] <= before[1] + 5 and after[2] <= before[2] + 2)
    producer.client.close()
    served.stop()


async def raw(served):
    return await asyncio.open_connection("127.0.0.1", served.port)


async def answered(served, token, what):
    """Checks that another client is answered now."""
    client, began = Client(served.port, token), time.perf_counter()
    try:
        await asyncio.wait_for(client.ask("GET", "/v1/sessions?limit=5"), 5)
        holds(f"others are answered {what}", True, f"{(time.perf_counter() - began) * 1e3:.0f} ms")
    except (OSError, EOFError, TimeoutError, Refused) as error:
        holds(f"others are answered {what}", False, repr(error))
    client.close()


async def check_revocation(served, token, producer):
    other = served.token("ana")
    socket = Socket(served.port, other)
    await socket.open()
    await socket.subscribe(scope="own")
    await producer.message()
    frame = await asyncio.wait_for(socket.receive(), 5)
    holds("a socket gets changes", frame["type"] == "change")
    served.run("token", "revoke", "--tokens", str(served.tokens_file), other.split("_")[1])
    await asyncio.sleep(2.2)
    await producer.message()
    frame = await asyncio.wait_for(socket.receive(), 30)
    holds("after its token is revoked, it gets no change", frame is None and socket.closed == 4401, frame or socket.closed)
    socket.close()


async def check_readers(served, token, others, producer):
    """Clients that do not read what they asked for."""
    silent = []
    for _ in range(8):
        socket = Socket(served.port, token)
        await socket.open()
        await socket.subscribe(scope="own")
        # Its window is full soon, and it reads nothing.
        socket.streams[0]._transport.pause_reading()
        silent.append(socket)
    before = served.memory()
    for _ in range(300):
        await producer.message()
    await answered(served, others, "while 8 sockets read nothing")
    large = Producer(served.port, others, "large")
    await large.put("transcript", [{"role": "user", "content": "large " * 100_000} for _ in range(40)], 0)
    path = "/v1/sessions/large/export"
    exports = []
    for _ in range(2):
        client = Client(served.port, others)
        await client.open()
        client.streams[0]._transport.pause_reading()
        client.streams[1].write(client.head("GET", path))
        exports.append(client)
    await answered(served, others, "while 2 exports are not read")
    holds("their memory is bounded", served.memory() < before + 40, f"{before:.0f} to {served.memory():.0f} MB")
    for client in silent + exports:
        client.close()


async def check_bodies(served, token, others):
    endless = []
    client = Client(served.port, token)
    for _ in range(30):
        reader, writer = await raw(served)
        writer.write(client.head("POST", "/v1/rows", ["content-type: application/jsonl", "transfer-encoding: chunked"]))
        endless.append(writer)

    async def feed(writer):
        try:
            for _ in range(200):
                writer.write(b"10000\r\n" + b" " * 65536 + b"\r\n")
                await writer.drain()
                await asyncio.sleep(0.01)
        except OSError:
            pass

    before = served.memory()
    feeding = [asyncio.create_task(feed(writer)) for writer in endless]
    await asyncio.sleep(2)
    await answered(served, others, "while 30 bodies do not end")
    holds("their memory is bounded", served.memory() < before + 100, f"{before:.0f} to {served.memory():.0f} MB")
    for task in feeding:
        task.cancel()
    for writer in endless:
        writer.close()
    # 1 GB of zeros in zstd: blocks of 128 KB that repeat one byte.
    blocks = 8_000
    block = (((1 << 17) << 3) | (1 << 1)).to_bytes(3, "little") + b" "
    last = (((1 << 17) << 3) | (1 << 1) | 1).to_bytes(3, "little") + b" "
    bomb = b"\x28\xb5\x2f\xfd\x00\x58" + block * (blocks - 1) + last
    before = served.memory()
    for path, method in [("/v1/rows", "POST"), ("/v1/sessions/bomb/transcript?project=x&host=x", "PUT")]:
        reader, writer = await raw(served)
        headers = ["content-type: application/jsonl", "content-encoding: zstd", "connection: close"]
        writer.write(client.head(method, path, headers, len(bomb)) + bomb)
        status = int((await asyncio.wait_for(reader.readline(), 60)).split()[1])
        writer.close()
        # As too large, or because a line has at most 64 MB.
        holds(f"a bomb of {len(bomb) // 1000} KB that becomes 1 GB is refused at {path.split('?')[0]}",
              status in (400, 413), status)
    # A body of lines has at most 80 MB, and a line of another store 64 MB.
    holds("its memory is bounded", served.memory() < before + 150, f"{before:.0f} to {served.memory():.0f} MB")


async def check_one_token(served, token, others):
    """One token asks for much at the same time, and sends and reads slowly: the others have their places."""
    large = Producer(served.port, token, "hoard")
    for first in range(0, 120, 20):
        await large.put("transcript", [{"role": "user", "content": "large " * 170_000} for _ in range(20)], first)
    before = served.memory()
    call = b'{"now": "2026-01-01T00:00:00Z[UTC]", "request": {"session": "hoard", "limit": 1000000}}'
    asked = [Client(served.port, token) for _ in range(12)]
    unread = []
    for client in asked:
        await client.open()
        client.streams[0]._transport.pause_reading()
        headers = ["content-type: application/json"]
        client.streams[1].write(client.head("POST", "/v1/operations/messages", headers, len(call)) + call)
    for path in ("/v1/sessions/hoard/export", "/v1/rows/hoard", "/v1/export"):
        client = Client(served.port, token)
        await client.open()
        client.streams[0]._transport.pause_reading()
        client.streams[1].write(client.head("GET", path))
        unread.append(client)
    slow = []
    kinds = [("POST", "/v1/rows"), ("PUT", "/v1/sessions/slow/transcript?project=x&host=x"), ("POST", "/v1/import")]
    for method, path in kinds * 6:
        _, writer = await raw(served)
        # Without a length, it could need all the memory that a body may have.
        writer.write(large.client.head(method, path, ["content-type: application/jsonl", "transfer-encoding: chunked"]) + b"1\r\n \r\n")
        slow.append(writer)
    await asyncio.sleep(2)
    await answered(served, others, "while one token takes all that it can get")
    client, began = Client(served.port, others), time.perf_counter()
    try:
        line = b'{"role": "user", "content": "another one"}'
        await asyncio.wait_for(client.ask("PUT", "/v1/sessions/other/transcript?project=x&host=x", line), 10)
        await asyncio.wait_for(client.ask("GET", "/v1/sessions/other/export"), 10)
        holds("others store and export meanwhile", True, f"{(time.perf_counter() - began) * 1e3:.0f} ms")
    except (OSError, EOFError, TimeoutError, Refused) as error:
        holds("others store and export meanwhile", False, repr(error))
    client.close()
    # At most 64 MB of lines for a token, which are there as rows, as objects and as text.
    holds("the memory of its answers is bounded", served.memory() < before + 300, f"{before:.0f} to {served.memory():.0f} MB")
    for client in asked + unread:
        client.close()
    for writer in slow:
        writer.close()
    large.client.close()


async def check_connections(served, token):
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    opened, refused = [], 0
    client = Client(served.port, token)
    await client.ask("GET", "/v1/me")
    for _ in range(10_000):
        try:
            _, writer = await asyncio.wait_for(raw(served), 2)
            opened.append(writer)
        except (OSError, TimeoutError):
            refused += 1
    try:
        await asyncio.wait_for(client.ask("GET", "/v1/me"), 5)
        holds("a client that was there before 10,000 connections is answered", True)
    except (OSError, EOFError, TimeoutError, Refused) as error:
        holds("a client that was there before 10,000 connections is answered", False, repr(error))
    print(f"     the server holds {served.descriptors()} descriptors, {served.memory():.0f} MB")
    holds("the server keeps few of them", served.descriptors() < 2_100)
    for writer in opened:
        writer.close()
    client.close()
    await asyncio.sleep(1)
    await answered(served, token, "after 10,000 connections")


async def check_peers(served, _):
    token, others = served.token("ana"), served.token("ben")
    served.start()
    producer = Producer(served.port, token, "written")
    await producer.message()
    await check_revocation(served, token, producer)
    await check_readers(served, token, others, producer)
    await check_bodies(served, token, others)
    await check_one_token(served, token, others)
    await check_connections(served, others)
    producer.client.close()
    began = time.perf_counter()
    served.stop()
    holds("the server ends when it is told", True, f"{time.perf_counter() - began:.1f} s")


CHECKS = {"churn": check_churn, "peers": check_peers}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checks", nargs="*", metavar="CHECK")
    parser.add_argument("--bin", required=True, type=os.path.abspath)
    parser.add_argument("--store")
    parser.add_argument("--minutes", type=float, default=10)
    args = parser.parse_args()
    for name in args.checks or CHECKS:
        if name not in CHECKS:
            parser.error(f"{name} is no check; checks are {', '.join(CHECKS)}")
        with tempfile.TemporaryDirectory() as folder:
            served = Served(args.bin, args.store or f"sqlite:{folder}/sessions.sqlite", folder)
            print(f"== {name}", flush=True)
            try:
                asyncio.run(CHECKS[name](served, args.minutes))
            finally:
                if getattr(served, "process", None) and served.process.poll() is None:
                    served.process.kill()
    raise SystemExit(holds.failed)


if __name__ == "__main__":
    main()
