#!/usr/bin/env python3
"""Does a search find what it should? Measures the quality of searches with the program.

    benches/eval.py --bin target/release/amplifier-sessions [--coding DIR] [--locomo FILE] [--names dev|frozen]
                    [--mode hybrid]

--coding DIR   coding sessions: amplifier/projects/... and questions.jsonl with {"question", "sessions"} lines.
               Prints how often the first, or one of the first five sessions is right, and the mean of 1/rank. With
               the sessions in the order of their first of 50 messages. Also prints how often commands that were run in
               the sessions find a message that ran them, and not one that mentions them; half of the commands are asked for.
--locomo FILE  the conversations of LoCoMo (Maharana et al., ACL 2024), as JSON. Prints how often evidence is among the
               first 1, 5 and 10 messages, MRR@10, and how often the first, or one of the first five sessions has it.
--names SET    identifiers, paths, hashes, error messages, mistyped words and other languages, in sessions made from
               the source of Python's standard library (PSF licence) and sentences of this file. The questions of
               `frozen` are not looked at while the search is tuned. This is the default.

Without options, only --names dev is measured. Nothing is written outside a temporary folder.
"""
import argparse
import ast
import datetime as dt
import hashlib
import importlib.util
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

MODULES = (
    "argparse ast asyncio.queues asyncio.streams base64 bisect calendar codecs collections configparser contextlib copy "
    "csv dataclasses datetime decimal difflib dis email.message enum fileinput fnmatch fractions ftplib functools "
    "getpass gettext glob graphlib gzip heapq hmac html.parser http.client http.cookies http.server imaplib inspect "
    "ipaddress json.decoder json.encoder keyword linecache locale logging logging.handlers lzma mailbox mimetypes "
    "netrc numbers optparse pathlib pdb pickle pickletools platform plistlib pprint profile pstats queue quopri random "
    "reprlib sched selectors shelve shlex shutil smtplib socket socketserver sqlite3.dbapi2 ssl statistics string "
    "stringprep subprocess sysconfig tabnanny tarfile tempfile textwrap threading timeit tokenize trace traceback "
    "tracemalloc types typing unittest.case unittest.mock urllib.parse urllib.request uuid venv warnings wave weakref "
    "webbrowser xml.dom.minidom xml.sax.saxutils zipfile zoneinfo"
).split()

SENTENCES = {
    "Wie verhindern wir, dass zwei Arbeiter dieselbe Zeile nehmen?": "zwei Arbeiter Zeile",
    "Die Größe des Zwischenspeichers wird beim Start festgelegt.": "Zwischenspeicher Größe",
    "Comment éviter que la sauvegarde échoue pendant la nuit ?": "sauvegarde échoue nuit",
    "Le serveur dépasse souvent son délai d'attente.": "délai d'attente serveur",
    "¿Por qué se perdió la conexión con la base de datos?": "perdió conexión base de datos",
    "Почему тесты падают только по понедельникам?": "тесты падают",
    "Сервер отклоняет слишком большие запросы.": "большие запросы",
    "データベースの接続が切れる原因を調べています。": "接続が切れる",
    "検索結果の順番がおかしいので直してください。": "検索結果の順番",
    "数据库连接池的大小应该是多少？": "连接池的大小",
    "请把错误日志写到单独的文件里。": "错误日志",
    "데이터베이스 연결이 자주 끊어집니다.": "데이터베이스 연결",
    "검색 결과의 순서를 바꿔 주세요.": "검색 결과",
}


def call(args, *words):
    command = [args.bin, "--store", f"sqlite:{args.folder}/store.sqlite", "--user", "eval", *words]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})
    if done.returncode not in (0, 3):
        raise SystemExit(f"{' '.join(words)}: {done.stderr.strip()[-300:]}")
    return done.stdout


def search_all(args, questions):
    def one(question):
        text, limit, *more = question
        answer = call(args, "search", text, "--mode", args.mode, "--limit", str(limit), "--no-refresh", "--json", *more)
        return json.loads(answer)["results"]

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, questions))


def rank(found, wanted):
    return next((place for place, one in enumerate(found, 1) if one in wanted), 0)


def distinct(results):
    return list(dict.fromkeys(result["session_id"] for result in results))


def share(ranks, most):
    return f"{sum(0 < one <= most for one in ranks) / len(ranks):.3f}"


def mean_reciprocal(ranks):
    return f"{sum(1 / one for one in ranks if one) / len(ranks):.3f}"


def write_session(root, project, session, messages, begin):
    folder = root / "projects" / project / "sessions" / session
    folder.mkdir(parents=True)
    lines = []
    for number, (role, text) in enumerate(messages):
        at = (begin + dt.timedelta(minutes=number)).isoformat(timespec="milliseconds")
        lines.append(json.dumps({"role": role, "content": text, "metadata": {"timestamp": at}}, ensure_ascii=False) + "\n")
    (folder / "transcript.jsonl").write_text("".join(lines))
    (folder / "metadata.json").write_text(json.dumps({"session_id": session, "created": begin.isoformat()}))


def coding(args):
    call(args, "sync", "--root", str(pathlib.Path(args.coding) / "amplifier"))
    with open(pathlib.Path(args.coding) / "questions.jsonl") as file:
        questions = [json.loads(line) for line in file]
    found = search_all(args, [(one["question"], 50) for one in questions])
    ranks = [rank(distinct(results), one["sessions"]) for results, one in zip(found, questions)]
    print(f"coding sessions: {len(ranks)} questions, R@1 {share(ranks, 1)}, R@5 {share(ranks, 5)}, MRR {mean_reciprocal(ranks)}")
    commands(args)


KEYWORDS = "case do done elif else esac export fi for function if in select then until while".split()


def run_in(script):
    """The commands of a script: lists of words. What follows the first here-document is left out."""
    lexer = shlex.shlex(script.replace("\\\n", " ").split("<<")[0], posix=True, punctuation_chars=";&|()\n")
    lexer.whitespace, lexer.whitespace_split = " \t\r", True
    found, command = [], []
    try:
        for word in [*lexer, ";"]:
            if not set(word) <= set(";&|()\n"):
                command.append(word)
            elif command:
                found.append(command)
                command = []
    except ValueError:  # a quote without an end
        return []
    return found


def commands(args):
    """Queries are the first two or three words of commands that at most ten messages ran, and that others mention."""
    ran, texts = {}, []
    for file in sorted(pathlib.Path(args.coding).glob("amplifier/projects/*/sessions/*/transcript.jsonl")):
        session = json.loads((file.parent / "metadata.json").read_text())["session_id"]
        for sequence, line in enumerate(file.open()):
            message = json.loads(line)
            calls = message.get("tool_calls") or []
            scripts = [call["arguments"]["command"] for call in calls if call.get("tool") == "Bash" and call["arguments"].get("command")]
            texts.append(((session, sequence), line))
            for words in (command for script in scripts for command in run_in(script)):
                for count in (2, 3):
                    if len(words) >= count and words[0] not in KEYWORDS and all(re.fullmatch(r"-{0,2}[a-z][a-z-]+", word) for word in words[:count]):
                        ran.setdefault(" ".join(words[:count]), set()).add((session, sequence))
    # In a fixed order that says nothing about the place.
    digest = lambda command: hashlib.sha256(command.encode()).digest()
    chosen = sorted((command for command, places in ran.items() if len(places) <= 10 and digest(command)[0] % 2 == 0), key=digest)
    mentioned = lambda command: sum(command in text for place, text in texts if place not in ran[command]) >= 3
    chosen = [command for command in chosen[:600] if mentioned(command)][:100]
    found = search_all(args, [(command, 5) for command in chosen])
    ranks = [rank([(one["session_id"], one["sequence"]) for one in results], ran[command]) for results, command in zip(found, chosen)]
    print(f"commands: {len(ranks)} queries, first {share(ranks, 1)}, among the first five {share(ranks, 5)}")
    if args.misses:
        print("".join(f"    {command!r}\n" for command, one in zip(chosen, ranks) if one != 1)[:2_000], end="")


def locomo(args):
    root, questions, wanted = pathlib.Path(args.folder) / "locomo", [], []
    for one in json.loads(pathlib.Path(args.locomo).read_text()):
        name, conversation = one["sample_id"], one["conversation"]
        for key, turns in conversation.items():
            if not re.fullmatch(r"session_\d+", key) or not isinstance(turns, list):
                continue
            try:
                begin = dt.datetime.strptime(conversation.get(f"{key}_date_time", ""), "%I:%M %p on %d %B, %Y")
            except ValueError:
                begin = dt.datetime(2023, 1, 1)
            messages = []
            for turn in turns:
                shared = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
                role = "user" if turn["speaker"] == conversation["speaker_a"] else "assistant"
                messages.append((role, f"{turn['speaker']}: {turn['text']}{shared}"))
            write_session(root, name, f"{name}-{key}", messages, begin.replace(tzinfo=dt.timezone.utc))
        for question in one["qa"]:
            evidence = [re.findall(r"D(\d+):(\d+)", place) for place in question.get("evidence") or []]
            places = {(f"{name}-session_{session}", int(turn) - 1) for all in evidence for session, turn in all}
            if places and question.get("category") != 5:
                questions.append((question["question"], 10, "--project", name))
                wanted.append(places)
    call(args, "sync", "--root", str(root))
    found = search_all(args, questions)
    places = [[(result["session_id"], result["sequence"]) for result in results] for results in found]
    ranks = [rank(of, wants) for of, wants in zip(places, wanted)]
    sessions = [rank(distinct(results), {session for session, _ in wants}) for results, wants in zip(found, wanted)]
    print(f"LoCoMo: {len(ranks)} questions, any@1 {share(ranks, 1)}, any@5 {share(ranks, 5)}, any@10 {share(ranks, 10)}, "
          f"MRR@10 {mean_reciprocal(ranks)}; sessions R@1 {share(sessions, 1)}, R@5 {share(sessions, 5)}")


def spellings(name):
    """The other spellings of a name in snake case."""
    first, *rest = name.split("_")
    camel = first + "".join(word.capitalize() for word in rest)
    return [camel, camel[0].upper() + camel[1:], "-".join([first, *rest])]


def has_name(text, name):
    """Whether a text has a name, in any spelling."""
    text = text.lower()
    return any(name.replace("_", joint) in text for joint in ("_", "", "-"))


def source_messages(module):
    """The functions and classes of a module, as messages, with the path of its file."""
    spec = importlib.util.find_spec(module)
    if not spec or not spec.origin or not spec.origin.endswith(".py"):
        return []
    text = pathlib.Path(spec.origin).read_text(errors="replace")
    path = f"Lib/{module.replace('.', '/')}.py"
    messages = []
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            body = "\n".join((ast.get_source_segment(text, node) or "").split("\n")[:60])
            digest = hashlib.sha256(body.encode()).hexdigest()
            messages.append(("user", f"What does {node.name} do?"))
            messages.append(("tool", f"{path}\n{body}"))
            messages.append(("assistant", f"I wrote it to {path}, as version {digest}."))
    return messages


def names(args):
    root, sessions, random_ = pathlib.Path(args.folder) / "names", {}, random.Random(7)
    for number, module in enumerate(MODULES):
        messages = source_messages(module)
        if messages:
            sessions[module.replace(".", "-")] = messages
    for number, sentence in enumerate(SENTENCES):
        sessions[f"language-{number}"] = [("user", sentence), ("assistant", "OK.")]
    begin = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
    for number, (session, messages) in enumerate(sessions.items()):
        write_session(root, "python", session, messages, begin + dt.timedelta(hours=number))
    call(args, "sync", "--root", str(root))

    # Each question has a test of a text: whether it is what was looked for.
    questions = {kind: [] for kind in ("identifiers", "paths", "hashes", "error messages", "mistyped words", "languages")}
    everything = "\n".join(text for messages in sessions.values() for _, text in messages)
    counts = {}
    for word in re.findall(r"[A-Za-z]{9,}", everything):
        counts[word.lower()] = counts.get(word.lower(), 0) + 1
    for messages in sessions.values():
        for _, text in messages:
            for name in sorted(set(re.findall(r"\b[a-z]+_[a-z]+(?:_[a-z]+)*\b", text))):
                spelled = random_.choice(spellings(name))
                questions["identifiers"].append((spelled, lambda text, name=name: has_name(text, name)))
            for path in re.findall(r"^Lib/\S+\.py$", text, re.M):
                questions["paths"].append((path, lambda text, path=path: path in text))
            for digest in re.findall(r"version ([0-9a-f]{64})", text):
                questions["hashes"].append((digest[:random_.choice([7, 8, 12, 40])], lambda text, digest=digest: digest in text))
            for error in re.findall(r'raise \w+\("([^"%{}\\]{20,80})"\)', text):
                questions["error messages"].append((error, lambda text, error=error: error in text))
            for word in sorted({word for word in re.findall(r"[a-z]{9,}", text) if counts.get(word) == 1})[:2]:
                at = random_.randrange(2, len(word) - 1)
                typed = word[:at] + word[at + 1] + word[at] + word[at + 2:] if random_.random() < 0.5 else word[:at] + word[at + 1:]
                questions["mistyped words"].append((typed, lambda text, word=word: word in text.lower()))
    for sentence, words in SENTENCES.items():
        questions["languages"].append((words, lambda text, sentence=sentence: sentence in text))
    is_frozen = lambda text: hashlib.sha256(text.encode()).digest()[0] % 2 == 1
    for kind, all in questions.items():
        # In a fixed order that says nothing about the place, at most 300, each text once.
        unique = {text: test for text, test in all}
        chosen = [one for one in unique.items() if is_frozen(one[0]) == (args.names == "frozen")]
        chosen = sorted(chosen, key=lambda one: hashlib.sha256(one[0].encode()).digest())[:300]
        found = search_all(args, [(text, 5) for text, _ in chosen])
        of = lambda result: sessions[result["session_id"]][result["sequence"]][1]
        ranks = [next((place for place, result in enumerate(results, 1) if test(of(result))), 0)
                 for results, (_, test) in zip(found, chosen)]
        print(f"{kind} ({args.names}): {len(ranks)} questions, first {share(ranks, 1)}, among the first five {share(ranks, 5)}")
        if args.misses:
            print("".join(f"    {text!r}\n" for (text, _), one in zip(chosen, ranks) if one != 1)[:2_000], end="")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--coding")
    parser.add_argument("--locomo")
    parser.add_argument("--names", choices=["dev", "frozen"])
    parser.add_argument("--mode", default="hybrid")
    parser.add_argument("--misses", action="store_true", help="print questions whose first result is wrong")
    args = parser.parse_args()
    args.bin = os.path.abspath(args.bin)
    for measure, chosen in ((coding, args.coding), (locomo, args.locomo), (names, args.names)):
        if chosen:
            with tempfile.TemporaryDirectory() as args.folder:
                measure(args)
    if not (args.coding or args.locomo or args.names):
        args.names = "dev"
        with tempfile.TemporaryDirectory() as args.folder:
            names(args)


if __name__ == "__main__":
    main()
