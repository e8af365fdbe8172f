#!/usr/bin/env python3
"""Verifies toolcell's record: verify_record.py FOLDER prints what is wrong, and exits with 1 if anything is."""
import hashlib, json, os, re, sys

os.chdir(sys.argv[1])
wrong = []

def sha(data): return hashlib.sha256(data).hexdigest()

def read(name):  # the last line is what stands behind the last line feed: nothing, unless it is torn
    return open(name, "rb").read().split(b"\n") if os.path.exists(name) else [b""]

def parse(line, wanted=lambda e: e["v"] == 1 and e["seq"] > 0 and e["kind"] and len(e["prev"]) == 64):
    try:
        e = json.loads(line)
        return e if wanted(e) else None
    except (ValueError, KeyError, TypeError):
        return None

def chain(name):  # the entries of a file, and the hashes of its name and its lines
    entries, hashes, lines = [], [sha(name.encode())], read(name)
    torn, last = 0, 0
    for n, line in enumerate(lines if parse(lines[-1]) else lines[:-1], 1):
        e = parse(line)
        if torn and not (e and e["kind"] == "torn" and e.get("bytes") == torn):
            wrong.append(f"{name}:{n - 1}: the line is no entry, and the next one does not say that it is torn")
        if e and e["seq"] != last + 1:
            wrong.append(f"{name}:{n}: entries are missing or moved: seq {e['seq']} follows {last}")
        elif e and e["prev"] != hashes[-1]:
            wrong.append(f"{name}:{n - 1}: the line was changed: line {n} has another hash of it" if n > 1 else
                         f"{name}:1: the file was moved, or its beginning removed")
        torn, last = (0, e["seq"]) if e else (len(line), last)
        entries += [e] if e else []
        hashes.append(sha(line))
    if torn:
        wrong.append(f"{name}:{len(hashes) - 1}: the line is no entry, and the next one does not say that it is torn")
    return entries, hashes

def values(name, entries):  # the texts of which entries have the size and the hash; some may be forgotten
    texts = {(e.get("run"), e["seq"], k): t for e in entries for k, t in e.items() if isinstance(t, dict) and "kept" in t}
    for n, line in enumerate(read(name), 1):
        v = parse(line, lambda v: v["seq"] > 0 and v["salt"])
        text = v and texts.pop((v.get("run"), v["seq"], v.get("field")), None)
        salt = bytes.fromhex(v["salt"] if re.fullmatch("([0-9a-fA-F]{2})*", v["salt"]) else "") if v else b""
        if v and not text:
            wrong.append(f"{name}:{n}: no entry has this value")
        elif v and sha(salt + (v.get("value", "") + v.get("tail", "")).encode()) != text.get("keptSHA256", text["sha256"]):
            wrong.append(f"{name}:{n}: it is not the value that was recorded")

lists = {day: chain(day + "/files.jsonl") for day in sorted(os.listdir()) if re.fullmatch(r"\d{4}-\d\d-\d\d", day)}
removed = {e["day"] for entries, _ in lists.values() for e in entries if e["kind"] == "day.removed"}
for day, (listed, _) in lists.items():
    before = listed[0].get("after") if listed else None
    if before not in lists and before not in removed | {None}:
        wrong.append(f"{day}/files.jsonl:1: the day before, {before}, is missing")
    elif before in lists and listed[0].get("head", lists[before][1][0]) not in lists[before][1]:
        wrong.append(f"{day}/files.jsonl:1: {before}/files.jsonl is not what it was when this day began")
    ends = {e["name"]: e for e in listed if e["kind"] in ("file.begin", "file.end")}
    there = {n for n in os.listdir(day) if re.search(r"(?<!\.values)\.jsonl$", n)} - {"files.jsonl"}
    wrong += [f"{day}/{name}: it is missing: files.jsonl lists it" for name in ends if name not in there]
    for name in (f"{day}/{n}" for n in there):
        (entries, hashes), end = chain(name), ends.get(os.path.basename(name))
        values(name[:-len("jsonl")] + "values.jsonl", entries)
        lines = len(hashes) - 1
        listed_lines = end.get("lines", 0) if end and end["kind"] == "file.end" else lines
        if not end and lines:
            wrong.append(f"{name}: files.jsonl does not list it")
        elif lines < listed_lines:
            wrong.append(f"{name}: it was cut: it has {lines} line{'s'[:lines != 1]}, and files.jsonl lists {listed_lines}")
        elif lines > listed_lines:
            wrong.append(f"{name}:{listed_lines + 1}: the line was added after the file was complete")
        elif end and end["kind"] == "file.end" and hashes[-1] != end.get("last"):
            wrong.append(f"{name}:{lines}: the line was changed: files.jsonl has another hash of it")
print("\n".join(wrong) or "The record is whole.")
sys.exit(bool(wrong))
