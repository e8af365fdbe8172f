"""Fits the word vectors to the utterances, and writes tuned.bin: tune.py, without arguments; it needs numpy.

An utterance and the names of its tools are a pair: the sum of the words of the one should point where the sum of the words
of the other does, and away from the names of other needs' tools. So each word of an utterance gets a vector of its own for
questions, and each word of a name one for tools, both begun at vectors.bin and moved by the gradient of the contrastive
loss (InfoNCE, van den Oord et al. 2018) with Adam. Only words that moved are written: README.md has the form.

The same files and the same numpy give the same bytes.
"""
import pathlib
import re
import struct

import numpy as np

HERE = pathlib.Path(__file__).parent
TEMPERATURE, BATCH, EPOCHS = 0.08, 512, 8
QUESTION_RATE, TOOL_RATE = 0.3, 0.1  # of a usual number in a vector, a step: names have few words, which must stay general


def read_vectors():
    """Returns (words, vectors): the number of each word, and what vectors.bin has for it."""
    raw = (HERE / "vectors.bin").read_bytes()
    assert raw[:4] == b"RCV1"
    n, dims = struct.unpack("<II", raw[4:12])
    offsets = np.frombuffer(raw, "<u4", n + 1, 12)
    scales = np.frombuffer(raw, "<f4", n, 12 + 4 * (n + 1))
    at = 12 + 4 * (n + 1) + 4 * n
    values = np.frombuffer(raw, np.int8, n * dims, at).reshape(n, dims)
    text = raw[at + n * dims:]
    words = {text[offsets[i]:offsets[i + 1]].decode(): i for i in range(n)}
    return words, values.astype(np.float32) * scales[:, None]


def read_pairs(words):
    """Returns (pairs, names): pairs of an utterance's word numbers and its need, and by need the names of its tools."""
    def numbers(text):
        return [words[w] for w in re.findall("[a-z0-9]+", text.lower()) if w in words]

    pairs, names = [], []
    for file in sorted((HERE / "utterances").glob("*.txt")):
        for line in file.read_text().splitlines():
            tools, colon, utterances = line.partition(":")
            known = [name for name in map(numbers, tools.split(",")) if name]
            if line.startswith("#") or not colon or not known:
                continue
            pairs += [(said, len(names)) for said in map(numbers, utterances.split(",")) if said]
            names.append(known)
    return pairs, names


class Table:
    """The vectors of one side, which Adam moves."""

    def __init__(self, begin, rate):
        self.vectors = begin.copy()
        self.mean, self.square = np.zeros_like(begin), np.zeros_like(begin)
        self.rate = rate * np.abs(begin).mean()
        self.moved = np.zeros(len(begin), bool)

    def units(self, texts):
        """Returns the unit vector of each text, and what move needs."""
        ids = np.concatenate(texts)
        of = np.repeat(np.arange(len(texts)), [len(t) for t in texts])
        sums = np.zeros((len(texts), self.vectors.shape[1]), np.float32)
        np.add.at(sums, of, self.vectors[ids])
        length = np.linalg.norm(sums, axis=1, keepdims=True) + 1e-9
        return sums / length, (ids, of, length)

    def move(self, units, how, gradient):
        ids, of, length = how
        gradient = (gradient - (gradient * units).sum(1, keepdims=True) * units) / length
        which, inverse = np.unique(ids, return_inverse=True)
        step = np.zeros((len(which), units.shape[1]), np.float32)
        np.add.at(step, inverse, gradient[of])
        self.mean[which] = 0.9 * self.mean[which] + 0.1 * step
        self.square[which] = 0.999 * self.square[which] + 0.001 * step * step
        self.vectors[which] -= self.rate * self.mean[which] / (np.sqrt(self.square[which]) + 1e-8)
        self.moved[which] = True


def fit(vectors, pairs, names):
    """Returns the tables of questions and of tools."""
    chance = np.random.default_rng(1)
    questions, tools = Table(vectors, QUESTION_RATE), Table(vectors, TOOL_RATE)
    for _ in range(EPOCHS):
        order = chance.permutation(len(pairs))
        for at in range(0, len(order) - BATCH, BATCH):
            batch = [pairs[i] for i in order[at:at + BATCH]]
            needs = np.array([need for _, need in batch])
            asked, how_asked = questions.units([said for said, _ in batch])
            told, how_told = tools.units([names[need][chance.integers(len(names[need]))] for need in needs])
            logits = asked @ told.T / TEMPERATURE
            logits[(needs[:, None] == needs) & ~np.eye(BATCH, dtype=bool)] = -1e9  # no strangers to each other
            chances = np.exp(logits - logits.max(1, keepdims=True))
            chances /= chances.sum(1, keepdims=True)
            chances[np.arange(BATCH), np.arange(BATCH)] -= 1
            chances /= TEMPERATURE * BATCH
            questions.move(asked, how_asked, chances @ told)
            tools.move(told, how_told, chances.T @ asked)
    return questions, tools


def bytes_of(vectors):
    """Returns (scales, values) as the file has them."""
    scales = np.abs(vectors).max(1) / 127
    return scales.astype("<f4").tobytes(), np.round(vectors / scales[:, None]).astype(np.int8).tobytes()


def main():
    words, vectors = read_vectors()
    with open(HERE / "tuned.bin", "wb") as out:
        out.write(b"RCT1" + struct.pack("<II", *vectors.shape))
        for table in fit(vectors, *read_pairs(words)):
            which = np.flatnonzero(table.moved)
            scales, values = bytes_of(table.vectors[which])
            out.write(struct.pack("<I", len(which)) + which.astype("<u4").tobytes() + scales + values)


main()
