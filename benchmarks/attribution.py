"""Four explanations of a translation, beside the true links of the phrases.

    keras-attention train                    # a Transformer on the phrases
    python benchmarks/attribution.py runs/phrases_en_de_transformer

RUNS are folders of runs that were trained on the corpus `phrases`, English to
German. Each model has to write the right translations of the test split, and
each method of `evaluation.attribution` says how much each German token owes to
each English token, END left out. Only models with attention in the encoder read
a masked source as it is meant: others have no row and no column of masking. It
prints a row for each method:

- the alignment error rate (Och and Ney 2003) in percent, when each German token
  is linked to the English token to which it owes most. Only tokens with a true
  link count;
- how much log-probability such a token loses in the mean when this English
  token is masked, and when the unknown token stands in its place;
- Kendall's tau: whether the method puts the English tokens into the order in
  which erasure puts them, by masking if there is a row of it. Jain and Wallace
  (2019) compare attention so.

Erasure has the greatest loss by definition. Two rows are no methods: a random
English token, and the true links. Their error rate is that of one link for each
token, and their loss that of the linked token that loses most. The phrases are
drawn from the split with the seed. `--picture` draws one of them.
"""

import argparse
import collections

import numpy as np

import keras_attention as ka
from keras_attention.data.embedded import phrases
from keras_attention.evaluation import alignment, attribution, phrase_alignment
from keras_attention.plotting import drawing
from keras_attention.tokens import END, PAD, UNK

MASKED, UNKNOWN = "erasure, masked", "erasure, unknown token"
RANDOM, TRUE = "a random token", "the true links"
ERASURES = (MASKED, UNKNOWN)
# What the picture has, and the first of the erasures.
DRAWN = ("attention, last layer", "rollout", "integrated gradients")


def explain(model, source_ids, labels, num_steps):
    """Name of a method -> [T, S], END left out."""
    pair = model, source_ids, labels
    num_layers = len(getattr(model, "decoder_layers", "1"))
    found = {}
    for layer in range(num_layers):
        name = f"layer {layer + 1}" if layer + 1 < num_layers else "last layer"
        found[f"attention, {name}"] = attribution.attention(*pair, layer)
    masks = "encoder" in model.maps
    if masks:
        found["rollout"] = attribution.rollout(*pair)
    found["integrated gradients"] = attribution.integrated_gradients(
        *pair, num_steps
    )
    if masks:
        found[MASKED] = attribution.erasure(*pair, replacement=PAD)
    found[UNKNOWN] = attribution.erasure(*pair, replacement=UNK)
    return {name: weights[:-1, :-1] for name, weights in found.items()}


def kendall(left, right):
    """The order of pairs in two lists: 1 if all are alike, -1 if none is."""
    orders = [np.sign(one[:, None] - one) for one in (left, right)]
    return (orders[0] * orders[1]).sum() / (len(left) * (len(left) - 1))


def measure(translator, pairs, rng, num_steps):
    """A row for each method, and what it says of each phrase.

    A row has a name, an error rate, a loss for each kind of erasure, and tau.
    """
    texts = [pair.source for pair in pairs], [pair.target for pair in pairs]
    tokenizers = (
        translator.graph.source_tokenizer,
        translator.graph.target_tokenizer,
    )
    ids = zip(
        *(
            [[*row, END] for row in tokenizer.tokenize(side).to_list()]
            for tokenizer, side in zip(tokenizers, texts, strict=True)
        ),
        strict=True,
    )
    rows = translator.align(*texts)
    true = phrase_alignment.links_in_tokens(pairs, rows)
    aligned = collections.defaultdict(list)
    drops = collections.defaultdict(list)
    orders = collections.defaultdict(list)
    explained = []
    for one, (sure, possible) in zip(ids, true, strict=True):
        found = explain(translator.model, *one, num_steps)
        explained.append(found)
        ways = [way for way in ERASURES if way in found]
        num_targets, num_sources = found[UNKNOWN].shape
        linked = sorted({target for _, target in possible})
        links = {
            name: weights.argmax(axis=-1) for name, weights in found.items()
        }
        links[RANDOM] = rng.integers(num_sources, size=num_targets)
        links[TRUE] = alignment.true_links(num_targets, sure, possible)
        for name, places in links.items():
            aligned[name].append((list(places), sure, possible))
            for t in linked:
                asked = [places[t]]
                if name == TRUE:
                    asked = [s for s, target in possible if target == t]
                drops[name].append([found[way][t, asked].max() for way in ways])
            if name in found and num_sources > 1:
                orders[name] += [
                    kendall(found[name][t], found[ways[0]][t]) for t in linked
                ]
    table = [
        (
            name,
            100 * alignment.alignment_error_rate(aligned[name]),
            *np.mean(drops[name], axis=0),
            np.mean(orders[name]) if orders[name] else None,
        )
        for name in aligned
    ]
    return table, rows, explained, true


def draw(pairs, rows, explained, true, path):
    """The first short number in words whose links cross, as in twenty-one."""
    index = next(
        index
        for index, pair in enumerate(pairs)
        if pair.category == "cardinal"
        and "-" in pair.source
        and len(pair.source) < 40
    )
    found = explained[index]
    erasure = next(way for way in ERASURES if way in found)
    names = [name for name in (*DRAWN, erasure) if name in found]
    shares = []
    for name in names:
        weights = np.maximum(found[name], 0)
        total = weights.sum(axis=-1, keepdims=True)
        shares.append(weights / np.where(total > 0, total, 1))
    figure = ka.plotting.attention_heat_map(
        rows[index]["source_tokens"][:-1],
        rows[index]["target_tokens"][:-1],
        shares,
        names=names,
        links=sorted(true[index][1]),
    )
    figure.axes[-1].set_ylabel("share of the row")
    drawing.save(figure, path)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--phrases", type=int, default=200)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--picture", help="of the first run")
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    pairs = phrases.generate("en", "de")["test"]
    places = rng.permutation(len(pairs))[: arguments.phrases]
    pairs = [pairs[place] for place in places]
    for number, run in enumerate(arguments.runs):
        translator = ka.load(run)
        table, *rest = measure(translator, pairs, rng, arguments.steps)
        print(f"\n{run}, {len(pairs):,} phrases\n")
        ways = [name for name, *_ in table if name in ERASURES]
        print(f"| | AER | {' | '.join(ways)} | tau |")
        print("|---" * (3 + len(ways)) + "|")
        for name, rate, *losses, tau in table:
            cells = [f"{rate:.1f}", *(f"{loss:.2f}" for loss in losses)]
            cells.append("" if tau is None else f"{tau:.2f}")
            print(f"| {name} | {' | '.join(cells)} |")
        if arguments.picture and not number:
            draw(pairs, *rest, arguments.picture)


if __name__ == "__main__":
    main()
