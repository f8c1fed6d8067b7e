"""Scores of translations: BLEU and chrF by sacrebleu, and exact match.

A BLEU score means something only next to its signature, which names the
tokenizer, the casing, the smoothing and the version, so the two are never
returned apart. All scores run from 0 to 100.

BLEU counts words, and a language says where its words end. Each function here
takes the target's language, and from it sacrebleu's tokenizer; `tokenize` names
another. Without either it is "13a", for languages with spaces between words.

References:
    Papineni et al. (2002), BLEU: a method for automatic evaluation of
    machine translation.
    Koehn (2004), Statistical significance tests for machine translation
    evaluation.
    Popović (2015), chrF: character n-gram F-score for automatic MT
    evaluation.
    Post (2018), A call for clarity in reporting BLEU scores.
"""

import functools
import itertools
import re
from collections.abc import Sequence

from sacrebleu import metrics

from keras_attention import suggestions
from keras_attention.evaluation import score_types

# By ISO 639 codes, of two letters and of three; "cn" and "jp", which name
# countries, are often written for the languages.
CHINESE = set("zh zho chi cmn yue wuu nan hak gan hsn cdo lzh cn".split())
JAPANESE = set("ja jpn jp".split())
KOREAN = set("ko kor".split())
# Thai, Lao, Khmer, Burmese, Shan, Mon, Tibetan, Dzongkha and Yi have no spaces
# between words, and sacrebleu has no tokenizer for them.
OTHERS_WITHOUT_BLANKS = set(
    "th tha lo lao km khm my mya bur shn mnw bo bod tib dz dzo ii iii".split()
)

NO_FOUR_WORDS = "BLEU is 0 because no translation has four words"


def bleu_tokenizer(target_language: str | None = None) -> str:
    """The name of sacrebleu's tokenizer for a language.

    Chinese has "zh". Japanese has "ja-mecab" and Korean "ko-mecab" where
    sacrebleu's extras `ja` and `ko` are installed, and "char" elsewhere.
    Other languages without spaces between words, such as Thai, have "char",
    which counts each character as a word. All others have "13a".

    Args:
        target_language: An ISO 639 code of two or three letters; script and
            country may follow, as in "zh-TW" and "zho_Hans". What is written
            in Latin letters, as "zh-Latn", has spaces.

    Returns:
        The name; the signature of a score has it after "tok:".

    Raises:
        ValueError: If the language is no text.

    Example:

    >>> bleu_tokenizer("zh-TW"), bleu_tokenizer("th"), bleu_tokenizer("de")
    ('zh', 'char', '13a')
    """
    if target_language is None:
        return "13a"
    if not isinstance(target_language, str):
        raise ValueError(
            'A language is a code, such as "zh". '
            f"Received: target_language={target_language!r}"
        )
    language, *subtags = re.split("[-_]", target_language.lower())
    if "latn" in subtags:
        return "13a"
    if language in CHINESE:
        return "zh"
    if language in JAPANESE:
        return "ja-mecab" if _is_installed("ja-mecab") else "char"
    if language in KOREAN:
        return "ko-mecab" if _is_installed("ko-mecab") else "char"
    return "char" if language in OTHERS_WITHOUT_BLANKS else "13a"


def corpus_scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    target_language: str | None = None,
    tokenize: str | None = None,
) -> score_types.CorpusScores:
    """Scores a whole corpus of translations, one reference each.

    BLEU counts runs of one to four words. Where no hypothesis has four words,
    sacrebleu gives 0, even if all of them are right. `bleu` then has a `note`
    that says so.

    Args:
        hypotheses: The translations to score, detokenized.
        references: The right translations, in the same order.
        target_language: The language of the texts, which says where words
            end, see `bleu_tokenizer`.
        tokenize: Another of sacrebleu's tokenizers by its name.

    Returns:
        A dictionary with

        - `bleu`, `bleu_lc`, `chrf`: each `{"score": float, "signature": str}`,
          the cased BLEU, the BLEU of lower-cased text, and chrF2;
        - `exact_match`: percentage of hypotheses that equal their reference,
          line ends at the end of either left out;
        - `sentences`: how many there were.

    Raises:
        ValueError: If there is nothing to score, if the lengths differ, or if
            the tokenizer is unknown.

    Example:

    >>> scores = corpus_scores(["der Hund"], ["der Hund"])
    >>> scores["exact_match"], scores["chrf"]["score"]
    (100.0, 100.0)
    """
    check_aligned(hypotheses=hypotheses, references=references)
    tokenize = _tokenizer(target_language, tokenize)
    cased = metrics.BLEU(tokenize=tokenize)
    lowered = metrics.BLEU(tokenize=tokenize, lowercase=True)
    return {
        "bleu": score_of(cased, hypotheses, references),
        "bleu_lc": score_of(lowered, hypotheses, references),
        "chrf": score_of(metrics.CHRF(), hypotheses, references),
        "exact_match": _exact_match(hypotheses, references),
        "sentences": len(hypotheses),
    }


def bleu_by_length(
    lengths: Sequence[int],
    hypotheses: Sequence[str],
    references: Sequence[str],
    edges: Sequence[int] = (5, 10, 15, 20, 30, 40, 50),
    lowercase: bool = False,
    num_samples: int = 0,
    target_language: str | None = None,
    tokenize: str | None = None,
) -> list[score_types.LengthRow]:
    """BLEU for short, middling and long sources, as Bahdanau et al. plot it.

    A bin's score is its own corpus BLEU. It uses sacrebleu's effective order,
    which changes nothing where a hypothesis has four words, and keeps a bin of
    shorter sentences from scoring 0 for want of any 4-gram.

    Args:
        lengths: Tokens of each source. (Not words: "9/6/06, 12:35 PM" is
            three of them, and long to a model that reads each digit.)
        hypotheses: The translations.
        references: The right translations.
        edges: The greatest length in each bin, rising; one more bin takes
            everything longer.
        lowercase: Whether BLEU ignores case. `exact_match` never does.
        num_samples: The samples of the bootstrap (Koehn 2004), which says how
            far BLEU would vary with other sentences; 0 for none.
        target_language: The language of the texts, which says where words
            end, see `bleu_tokenizer`.
        tokenize: Another of sacrebleu's tokenizers by its name.

    Returns:
        One row per bin that is not empty, shortest first: `low` and `high`
        (lengths, both included; `high` is None in the open bin),
        `sentences`, `bleu`, its `signature` and `exact_match`; with samples
        also `interval`, half the width of the 95 % confidence interval of
        `bleu`.

    Raises:
        ValueError: If there is nothing to score, if there is not one length,
            hypothesis and reference each, if the edges do not rise, or if
            the tokenizer is unknown.

    Example:

    >>> rows = bleu_by_length([1, 3], ["x", "y"], ["x", "z"], [2])
    >>> [(row["low"], row["high"], row["exact_match"]) for row in rows]
    [(0, 2, 100.0), (3, None, 0.0)]
    """
    check_aligned(hypotheses=hypotheses, references=references)
    if len(lengths) != len(hypotheses):
        raise ValueError(
            f"There are {len(lengths)} lengths, {len(hypotheses)} hypotheses: "
            "give one length for each hypothesis."
        )
    edges = list(edges)
    if not edges or any(a >= b for a, b in itertools.pairwise([0, *edges])):
        raise ValueError(
            f"`edges` must be positive, rising lengths. Received: edges={edges}"
        )
    bleu = metrics.BLEU(
        lowercase=lowercase,
        effective_order=True,
        tokenize=_tokenizer(target_language, tokenize),
    )
    lows = [0, *(edge + 1 for edge in edges)]
    rows = []
    for low, high in zip(lows, [*edges, None], strict=True):
        pairs = [
            pair
            for length, *pair in zip(
                lengths, hypotheses, references, strict=True
            )
            if low <= length and (high is None or length <= high)
        ]
        if pairs:
            row = _bin(bleu, *zip(*pairs, strict=True), num_samples)
            rows.append({"low": low, "high": high, **row})
    return rows


def _bin(bleu, hypotheses, references, num_samples):
    """What a row of `bleu_by_length` says of its sentences."""
    result = score_of(bleu, hypotheses, references)
    row = {
        "sentences": len(hypotheses),
        "bleu": result["score"],
        "signature": result["signature"],
        "exact_match": _exact_match(hypotheses, references),
    }
    if num_samples:
        (result,) = _bootstrap(
            [("", hypotheses)], references, bleu, num_samples
        )
        row["interval"] = float(result.ci)
    return row


def paired_bootstrap(
    baseline: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    lowercase: bool = False,
    num_samples: int = 1000,
    target_language: str | None = None,
    tokenize: str | None = None,
) -> dict[str, float]:
    """Whether two systems differ in BLEU by more than chance.

    Sacrebleu's paired bootstrap (Koehn 2004): both are scored on the same
    samples of the sentences. Two-sided, so look at the sign too. Its seed is
    the environment's SACREBLEU_SEED, by default 12345.

    Args:
        baseline: The translations of one system.
        hypotheses: Those of the other.
        references: The right translations.
        lowercase: Whether BLEU ignores case.
        num_samples: The samples of the bootstrap.
        target_language: The language of the texts, which says where words
            end, see `bleu_tokenizer`.
        tokenize: Another of sacrebleu's tokenizers by its name.

    Returns:
        `difference`, the second system's BLEU less the first one's, and
        `p_value`, how probable it is that chance alone makes one as large.

    Raises:
        ValueError: If there is nothing to score, if the lengths differ, or if
            the tokenizer is unknown.
    """
    check_aligned(
        baseline=baseline, hypotheses=hypotheses, references=references
    )
    bleu = metrics.BLEU(
        lowercase=lowercase, tokenize=_tokenizer(target_language, tokenize)
    )
    first, second = _bootstrap(
        [("baseline", baseline), ("system", hypotheses)],
        references,
        bleu,
        num_samples,
    )
    difference = float(second.score - first.score)
    # Where nothing differs, sacrebleu counts no sample as large.
    p_value = float(second.p_value) if difference else 1.0
    return {"difference": difference, "p_value": p_value}


def _tokenizer(target_language, tokenize):
    """Sacrebleu's tokenizer: the one asked for, or the language's."""
    if tokenize is None:
        return bleu_tokenizer(target_language)
    check_tokenizer(tokenize)
    return tokenize


def check_tokenizer(tokenize: str) -> None:
    """Checks that sacrebleu has a tokenizer of this name, and what it needs.

    Raises:
        ValueError: If it has not.
    """
    if tokenize not in metrics.BLEU.TOKENIZERS:
        raise ValueError(
            "`tokenize` must be one of sacrebleu's tokenizers "
            f"{sorted(metrics.BLEU.TOKENIZERS)}. Received: {tokenize!r}"
            f"{suggestions.closest(tokenize, metrics.BLEU.TOKENIZERS)}"
        )
    language, _, extra = tokenize.partition("-")
    if extra == "mecab" and not _is_installed(tokenize):
        raise ValueError(
            f"sacrebleu lacks what it needs for tokenize={tokenize!r}. Install "
            f'it: python -m pip install "sacrebleu[{language}]"'
        )


@functools.cache
def _is_installed(tokenize):
    """Whether sacrebleu finds a tokenizer's package and dictionary."""
    try:
        metrics.BLEU(tokenize=tokenize)
    except (RuntimeError, AssertionError):
        return False
    return True


def _bootstrap(systems, references, metric, num_samples):
    """Sacrebleu's result for each system; the first is the baseline."""
    # It imports numpy, and the command line checks a name before that.
    from sacrebleu import significance

    test = significance.PairedTest(
        [(name, list(texts)) for name, texts in systems],
        {"BLEU": metric},
        [list(references)],
        test_type="bs",
        n_samples=num_samples,
    )
    _, results = test()
    return results["BLEU"]


def score_of(metric, hypotheses, references):
    """One metric's score with the signature it can be repeated by.

    Args:
        metric: of sacrebleu.
        hypotheses, references: see `corpus_scores`.

    Returns:
        `{"score": float, "signature": str}`, and a `note` about a BLEU of 0.
    """
    result = metric.corpus_score(list(hypotheses), [list(references)])
    score = {
        # A perfect BLEU comes out as exp(log(100)), a hair off.
        "score": round(float(result.score), 10),
        "signature": str(metric.get_signature()),
    }
    if isinstance(metric, metrics.BLEU) and not result.totals[-1]:
        score["note"] = NO_FOUR_WORDS
    return score


def _exact_match(hypotheses, references):
    # Lines that were read from a file may still have their ends.
    equal = sum(
        hypothesis.rstrip("\r\n") == reference.rstrip("\r\n")
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    )
    return 100.0 * equal / len(hypotheses)


def check_aligned(**texts):
    """Checks lists of texts that belong together.

    Raises:
        ValueError: If there is nothing to score, if the lengths differ, or if
            one text is given in place of a list.
    """
    for name, value in texts.items():
        if isinstance(value, (str, bytes)):
            raise ValueError(
                f"`{name}` must be a sequence of strings, not one string. "
                f"Received: {value[:50]!r}"
            )
        wrong = [text for text in value if not isinstance(text, str)]
        if wrong:
            raise ValueError(
                f"`{name}` must hold strings only. "
                f"Received: {repr(wrong[0])[:50]}"
            )
    lengths = {name: len(value) for name, value in texts.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        counts = ", ".join(f"{size} {name}" for name, size in lengths.items())
        raise ValueError(
            "There must be as many of each, and at least one. "
            f"Received: {counts}"
        )
