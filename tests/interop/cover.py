"""A pairwise cover: few rows in which every two values of two columns that occur together in any row occur together in one of them.

Most faults of combinations need two values at once, so a cover finds most of what the whole matrix finds in a fraction of its
runs. This one is greedy: always the row with most pairs that no row before it has, the first of several; so it is the same
everywhere. A variant that only one client has is not paired with the other columns: its client is.
"""
import collections
import dataclasses
import itertools


def cover(rows):
    owners = collections.defaultdict(set)
    for row in rows:
        owners[row.variant].add(row.client)

    def pairs_of(row):
        columns = dataclasses.asdict(row)
        found = set(itertools.combinations(columns.items(), 2))
        if len(owners[row.variant]) > 1:
            return found
        return {pair for pair in found if ("variant", row.variant) not in pair or ("client", row.client) in pair}

    open_pairs = set().union(*map(pairs_of, rows))
    left = [(row, pairs_of(row)) for row in rows]
    chosen = []
    while open_pairs:
        row, pairs = max(left, key=lambda candidate: len(candidate[1] & open_pairs))
        chosen.append(row)
        open_pairs -= pairs
    return chosen
