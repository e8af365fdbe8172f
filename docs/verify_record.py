#!/usr/bin/env python3
"""Verifies toolcell's record: verify_record.py FOLDER prints where it is wrong, and exits with 1 if it is."""
import hashlib, json, os, re, sys
os.chdir(sys.argv[1])
wrong = []

def sha(data): return hashlib.sha256(data).hexdigest()

def regular(name): return os.path.isfile(name) and not os.path.islink(name)

def read(name):  # its lines; the last is what stands behind the last line feed: nothing, unless it is torn
    return open(name, "rb").read().split(b"\n") if regular(name) else [b""]

def later(e): return e["v"] > 1  # a newer toolcell wrote it, and it may say anything

def entry(e): return e["v"] == 1 and e["seq"] > 0 and 0 < len(e["kind"]) <= 64 == len(e["prev"]) and len(e.get("run", "")) <= 64

def parse(line, wanted=entry):
    try:
        return e if wanted(e := json.loads(line)) else None
    except (ValueError, KeyError, TypeError):
        return None

def chain(name):  # the entries of a file, the hashes of its name and its lines, and whether some are later ones
    entries, hashes, lines, torn, last, skipped, newer = [], [sha(name.encode())], read(name), 0, 0, False, False
    for n, line in enumerate((lines if parse(lines[-1]) or parse(lines[-1], later) else lines[:-1]) + [None], 1):
        e, new = line and parse(line), line and parse(line, later)
        if torn and not new and not (e and e["kind"] == "torn" and e.get("bytes") == torn):
            wrong.append(f"{name}:{n - 1}: this line is not a valid entry")
        if e and e["seq"] != last + 1 and not skipped:
            wrong.append(f"{name}:{n}: entries before it are missing, or were moved")
        elif e and e["prev"] != hashes[-1]:
            wrong.append(f"{name}:{max(1, n - 1)}: this is not the line whose hash the next one has")
        if line is not None:
            torn, last, entries = (0, e["seq"], entries + [e]) if e else (0 if new else len(line), last, entries)
            skipped, newer = bool(new) or skipped and not e, newer or bool(new)
            hashes.append(sha(line))
    return entries, hashes, newer

def values(name, entries, newer):  # each text has its entry and its hash; those that were forgotten are not there
    texts = {(e.get("run"), e["seq"], k): t for e in entries for k, t in e.items() if isinstance(t, dict) and "kept" in t}
    for n, line in enumerate(read(name), 1):
        if v := parse(line, lambda v: v["seq"] > 0 and v["salt"]):
            text = texts.pop((v.get("run"), v["seq"], v.get("field")), {})
            salt = bytes.fromhex(v["salt"]) if re.fullmatch("([0-9a-fA-F]{2})*", v["salt"]) else b""
            if (text or not newer) and sha(salt + (v.get("value", "") + v.get("tail", "")).encode()) != text.get("keptSHA256", text.get("sha256")):
                wrong.append(f"{name}:{n}: no entry has the hash of this value")

days = [day for day in sorted(os.listdir()) if re.fullmatch(r"\d{4}-\d\d-\d\d", day)]
wrong += [f"{day}: this is not a folder" for day in days if os.path.islink(day) or not os.path.isdir(day)]
lists = {day: chain(day + "/files.jsonl") for day in days if os.path.isdir(day) and not os.path.islink(day)}
removed = {e.get("day") for entries, *_ in lists.values() for e in entries if e["kind"] == "day.removed"}
for day, (listed, _, newer) in lists.items():
    before = listed[0].get("after") if listed else None
    if before not in removed | {None} and (before not in lists or listed[0].get("head", "") not in ["", *lists[before][1]]):
        wrong.append(f"{day}/files.jsonl:1: {before} is missing, or its files.jsonl was changed")
    ends = {f"{day}/{e.get('name', '')}": e for e in listed if e["kind"] in ("file.begin", "file.end")}
    files = {f"{day}/{n}" for n in os.listdir(day) if n.endswith(".jsonl")}
    wrong += [f"{name}: this is not a regular file" for name in files if not regular(name)]
    there = {name for name in files if regular(name) and not re.search(r"(\.values|/files)\.jsonl$", name)}
    wrong += [f"{name}: it is listed, and missing" for name in ends.keys() - there]
    for name in there:
        (entries, hashes, later_lines), end = chain(name), ends.get(name)
        values(name.removesuffix("jsonl") + "values.jsonl", entries, later_lines)
        if not end and hashes[1:] and not newer:
            wrong.append(f"{name}: it is not listed")
        elif end and end["kind"] == "file.end" and (len(hashes) - 1, hashes[-1]) != (end.get("lines"), end.get("last")):
            wrong.append(f"{name}: it is not what it was when it was complete")
print("\n".join(wrong) or "The record is whole.")
sys.exit(bool(wrong))
