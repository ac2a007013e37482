#!/usr/bin/env python3
"""From how many vectors on is a graph index (HNSW) faster than comparing all codes, and what does a filter cost it?

    python3 -m venv venv && venv/bin/pip install numpy usearch
    venv/bin/python benches/graph_index.py --store FILE.sqlite [--sizes 10000,100000,1000000] [--limit 250]

FILE.sqlite is a store with vectors. For each size, takes that many of its vectors and compares on one core: an exact
scan of 8-bit codes (usearch, SIMD), and HNSW with 16-bit floats (usearch, 16 links, 128 candidates while building). A
search of this library asks for 250 candidates. HNSW searches with ever more candidates until it finds 0.99 of the exact
nearest. With a filter that admits one vector in a hundred, HNSW has to find a hundred times as many, and the scan
compares a hundredth. What both find would be compared in full; that is not timed. Queries are stored vectors of short
texts with some noise. Prints a Markdown table.
"""
import argparse, math, sqlite3, statistics, time

import numpy as np
from usearch.index import Index, MetricKind, search

QUERIES = 50
ADMITTED = 100

# Vectors that are added to a graph between two looks at the clock.
ADDED = 50_000


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def decoded(blobs):
    if len(blobs[0]) % 2:
        halves = np.frombuffer(b"".join(blob[1:] for blob in blobs), dtype="<f2")
        return halves.reshape(len(blobs), -1).astype(np.float32)
    return np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(blobs), -1)


def timed(work, queries):
    """What each query finds, and the times in milliseconds."""
    found, times = [], []
    for query in queries:
        start = time.perf_counter()
        found.append(work(query))
        times.append((time.perf_counter() - start) * 1e3)
    return found, times


def recall(found, part, queries, limit):
    """The share of the nearest among those found, compared in full. Equally near vectors count alike."""
    held = 0
    for keys, query in zip(found, queries):
        similarity = part @ query
        least = np.partition(similarity, -limit)[-limit] - 1e-6
        held += min(limit, int((similarity[np.unique(keys)] >= least).sum()))
    return held / (limit * len(queries))


def read(store, most):
    """Up to `most` vectors of a SQLite store, and queries."""
    store = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    rows = store.execute("SELECT vector FROM transcript_vectors WHERE generation = 0 LIMIT ?", (most,))
    vectors = decoded([blob for blob, in rows])
    short = store.execute(
        "SELECT vector FROM transcript_vectors WHERE generation = 0 AND content_type = 'user_query' AND span_end < 150 LIMIT ?",
        (QUERIES * 20,),
    ).fetchall()
    random = np.random.default_rng(1)
    queries = decoded([blob for blob, in short[::20]])
    return vectors, unit(queries + random.normal(0, 0.02, queries.shape)).astype(np.float32)


def codes_of(vectors):
    return np.rint(vectors / np.abs(vectors).max(axis=1, keepdims=True) * 127).astype(np.int8)


def scan_times(codes, queries, limit):
    """Times of an exact scan of 8-bit codes on one core."""
    scan = lambda query: search(codes, query, limit, MetricKind.Cos, exact=True, threads=1).keys.tolist()
    return timed(scan, codes_of(queries))[1]


def graph_of(vectors, seconds=math.inf):
    """An HNSW index of 16-bit floats, and the seconds it took to build. Ends early, with fewer vectors than it was given,
    once it has taken `seconds`."""
    index = Index(ndim=vectors.shape[1], metric="cos", dtype="f16", connectivity=16, expansion_add=128)
    start = time.perf_counter()
    for first in range(0, len(vectors), ADDED):
        part = vectors[first : first + ADDED]
        index.add(np.arange(first, first + len(part)), part)
        if time.perf_counter() - start > seconds:
            break
    return index, time.perf_counter() - start


def graph_times(index, vectors, queries, limit):
    """The candidates that a graph needs for a recall of 0.99, the recall, and the times of searches on one core."""
    for candidates in (limit, 500, 1000, 2000, 4000, 8000, 16000):
        index.expansion_search = candidates
        many = min(candidates, len(vectors))
        found, times = timed(lambda query: index.search(query, many, threads=1).keys.tolist(), queries)
        held = recall(found, vectors, queries, limit)
        if held >= 0.99:
            break
    return candidates, held, times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True)
    parser.add_argument("--sizes", default="10000,30000,100000,300000,1000000")
    parser.add_argument("--limit", type=int, default=250)
    args = parser.parse_args()
    sizes = [int(size) for size in args.sizes.split(",")]
    vectors, queries = read(args.store, max(sizes))
    codes = codes_of(vectors)
    median = statistics.median

    print("| vectors | scan of codes | HNSW | candidates, recall | scan, 1 in 100 | HNSW, 1 in 100 | built in | memory |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for size in sizes:
        part, part_codes = vectors[:size], np.ascontiguousarray(codes[:size])
        of_scan = scan_times(part_codes, queries, args.limit)
        few = np.ascontiguousarray(part_codes[::ADMITTED])
        of_scan_few = scan_times(few, queries, min(args.limit, len(few)))
        index, built = graph_of(part)
        candidates, held, of_graph = graph_times(index, part, queries, args.limit)
        many = min(args.limit * ADMITTED, size)
        index.expansion_search = many
        _, of_graph_few = timed(lambda query: index.search(query, many, threads=1).keys.tolist(), queries[:10])
        print(
            f"| {size:,} | {median(of_scan):.2f} ms | {median(of_graph):.2f} ms | {candidates:,}, {held:.3f} "
            f"| {median(of_scan_few):.2f} ms | {median(of_graph_few):.1f} ms | {built:.0f} s "
            f"| {index.memory_usage / 1e6:,.0f} MB |",
            flush=True,
        )


if __name__ == "__main__":
    main()
