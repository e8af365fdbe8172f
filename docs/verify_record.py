#!/usr/bin/env python3
"""Verifies toolcell's record: verify_record.py FOLDER prints where it is wrong, and exits with 1 if it is."""
import hashlib, json, os, re, sys
os.chdir(sys.argv[1])
wrong = []

def sha(data): return hashlib.sha256(data).hexdigest()

def read(name):  # its lines; the last is what stands behind the last line feed: nothing, unless it is torn
    return open(name, "rb").read().split(b"\n") if os.path.exists(name) else [b""]

def parse(line, wanted=lambda e: e["v"] == 1 and e["seq"] > 0 and e["kind"] and len(e["prev"]) == 64):
    try:
        return e if wanted(e := json.loads(line)) else None
    except (ValueError, KeyError, TypeError):
        return None

def chain(name):  # the entries of a file, and the hashes of its name and its lines
    entries, hashes, lines, torn, last = [], [sha(name.encode())], read(name), 0, 0
    for n, line in enumerate((lines if parse(lines[-1]) else lines[:-1]) + [None], 1):
        e = line and parse(line)
        if torn and not (e and e["kind"] == "torn" and e.get("bytes") == torn):
            wrong.append(f"{name}:{n - 1}: this is no entry, and the next one does not say that it is torn")
        if e and e["seq"] != last + 1:
            wrong.append(f"{name}:{n}: entries before it are missing, or were moved")
        elif e and e["prev"] != hashes[-1]:
            wrong.append(f"{name}:{max(1, n - 1)}: this is not the line whose hash the next one has")
        if line is not None:
            torn, last, entries = (0, e["seq"], entries + [e]) if e else (len(line), last, entries)
            hashes.append(sha(line))
    return entries, hashes

def values(name, entries):  # each text has its entry and its hash; those that were forgotten are not there
    texts = {(e.get("run"), e["seq"], k): t for e in entries for k, t in e.items() if isinstance(t, dict) and "kept" in t}
    for n, line in enumerate(read(name), 1):
        if v := parse(line, lambda v: v["seq"] > 0 and v["salt"]):
            text = texts.pop((v.get("run"), v["seq"], v.get("field")), {})
            salt = bytes.fromhex(v["salt"]) if re.fullmatch("([0-9a-fA-F]{2})*", v["salt"]) else b""
            if sha(salt + (v.get("value", "") + v.get("tail", "")).encode()) != text.get("keptSHA256", text.get("sha256")):
                wrong.append(f"{name}:{n}: no entry has the hash of this value")

lists = {day: chain(day + "/files.jsonl") for day in sorted(os.listdir()) if re.fullmatch(r"\d{4}-\d\d-\d\d", day)}
removed = {e.get("day") for entries, _ in lists.values() for e in entries if e["kind"] == "day.removed"}
for day, (listed, _) in lists.items():
    before = listed[0].get("after") if listed else None
    if before not in removed | {None} and (before not in lists or listed[0].get("head", "") not in ["", *lists[before][1]]):
        wrong.append(f"{day}/files.jsonl:1: {before} is missing, or its files.jsonl was changed")
    ends = {f"{day}/{e.get('name', '')}": e for e in listed if e["kind"] in ("file.begin", "file.end")}
    there = {f"{day}/{n}" for n in os.listdir(day) if re.search(r"(?<!\.values)\.jsonl$", n) and n != "files.jsonl"}
    wrong += [f"{name}: it is listed, and missing" for name in ends.keys() - there]
    for name in there:
        (entries, hashes), end = chain(name), ends.get(name)
        values(name.removesuffix("jsonl") + "values.jsonl", entries)
        if not end and hashes[1:]:
            wrong.append(f"{name}: it is not listed")
        elif end and end["kind"] == "file.end" and (len(hashes) - 1, hashes[-1]) != (end.get("lines"), end.get("last")):
            wrong.append(f"{name}: it is not what it was when it was complete")
print("\n".join(wrong) or "The record is whole.")
sys.exit(bool(wrong))
