"""How the page writes on by `inspect`, and draws what is large: its functions.

Pieces, probabilities and answers are counted by hand.
"""

import numpy as np
import pytest
from browsing import quoted

pytest.importorskip("h11", reason="the extra `serve` is not installed")

from keras_attention.server import model_configs  # noqa: E402

pytestmark = pytest.mark.slow
# `write` with a model that reads the longest pieces, and writes by a table.
WRITE = """async ({ pieces, prompt, follows, given, guess, most }) => {
  const { answerOf } = await import("/page/spelling.js");
  const { textOf } = await import("/page/tokens.js");
  const { mostProbable, write } = await import("/page/writing.js");
  const cut = (text) => {
    const found = [];
    let rest = ` ${text.trim()}`.replaceAll(" ", "▁");
    while (rest) {
      found.push(pieces.find((piece) => rest.startsWith(piece)));
      rest = rest.slice(found.at(-1).length);
    }
    return found;
  };
  const asked = [];
  const ask = async (answer) => {
    asked.push(answer);
    const tokens = [...cut(prompt + answer), "[END]"];
    const best = ["", ...tokens.slice(0, -1)].map((token) =>
      [{ token: follows[token] ?? "[END]", probability: 1 }]);
    return { tokens, numGiven: cut(prompt).length, best };
  };
  const { seen, count, isEnded } = await write(
    { ask, given, guess, choose: mostProbable, most });
  const end = seen.numGiven + count;
  const text = textOf(answerOf(seen, end));
  return [seen.tokens.slice(seen.numGiven, end), text, isEnded, asked];
}"""
PIECES = "▁three ▁one ▁two ▁ab ▁a ▁b ▁c ▁t ▁ a b c o w".split()


@pytest.fixture(scope="module")
def served(run_server, model_folders):
    configs = [model_configs.ModelConfig("shout", model_folders["shout"])]
    with run_server(configs) as client:
        yield f"http://127.0.0.1:{client.rest_port}/"


@pytest.mark.parametrize(
    ("prompt", "given", "guess", "follows", "expected"),
    [
        # Given tokens are one token of the text.
        (
            "one",
            ["▁a", "b"],
            [],
            {"▁ab": "c"},
            [["▁ab", "c"], " abc", True, [" ab", " abc"]],
        ),
        # They are one with the prompt's last token.
        (
            "one t",
            ["w", "o"],
            [],
            {"▁two": "▁three"},
            [["▁two", "▁three"], "wo three", True, ["wo", "wo three"]],
        ),
        # A guess that would change the given token is dropped.
        (
            "one",
            ["▁a"],
            ["b"],
            {"▁a": "▁c"},
            [["▁a", "▁c"], " a c", True, [" ab", " a", " a c"]],
        ),
        # What is chosen behind the given token changes it.
        (
            "one",
            ["▁a"],
            [],
            {"▁a": "b", "▁ab": "▁c"},
            [["▁ab", "▁c"], " ab c", True, [" a", " ab", " ab c"]],
        ),
        # No text has "▁a" and then "b", which the model would write.
        (
            "one",
            [],
            [],
            {"▁one": "▁a", "▁a": "b", "▁ab": "c"},
            [
                ["▁ab", "c"],
                " abc",
                True,
                ["", " a", " ab", " ac", " ab", " abc"],
            ],
        ),
        # A text loses a blank at its end.
        (
            "one",
            ["▁b", "▁"],
            [],
            {"▁b": "c", "c": "a"},
            [["▁b", "▁c"], " b c", True, [" b ", " b c"]],
        ),
        # END is never given, and three letters reach the length.
        (
            "one",
            ["▁a", "b", "c"],
            [],
            {"c": "c"},
            [["▁ab", "c", "c"], " abcc", False, [" abc", " abcc"]],
        ),
    ],
)
def test_given_tokens_may_merge(
    open_page, prompt, given, guess, follows, expected
):
    inputs = {
        "pieces": PIECES,
        "prompt": prompt,
        "follows": follows,
        "given": given,
        "guess": guess,
        "most": 3,
    }
    assert open_page("shout").evaluate(WRITE, inputs) == expected


def test_a_draw_by_hand(open_page):
    # At temperature 2 the shares .8 and .2 are as 2 to 1.
    found = open_page("shout").evaluate(
        """async () => {
          const { drawing } = await import("/page/writing.js");
          const choices = [
            { token: "[UNK]", probability: 0.9 },
            { token: "▁a", probability: 0.8 },
            { token: "▁b", probability: 0.2 },
          ];
          const drawn = (number, options) => {
            Math.random = () => number;
            const choose = drawing(
              { temperature: 2, topK: 10, topP: 1, ...options });
            const { token, share } = choose(choices, 0);
            Math.random = () => 1 - number;
            // What is asked again is drawn again.
            return [token, share, choose(choices, 0).token];
          };
          return [
            drawn(0.66), drawn(0.67), drawn(0.79, { temperature: 1 }),
            drawn(0.81, { temperature: 1 }), drawn(0.99, { topK: 1 }),
            drawn(0.99, { topP: 0.66 }), drawn(0.99, { topP: 0.67 }),
          ];
        }"""
    )
    a, b = "▁a", "▁b"
    assert [(one, again) for one, _, again in found] == [
        (one, one) for one in (a, b, a, b, a, a, b)
    ]
    shares = [2 / 3, 1 / 3, 0.8, 0.2, 2 / 3, 2 / 3, 1 / 3]
    assert [share for _, share, _ in found] == pytest.approx(shares)


def test_a_large_map_has_a_small_picture_alone(open_page):
    # The stack holds about 120,000 arguments of a function.
    found = open_page("shout").evaluate(
        """async () => {
          const { drawArcs } = await import("/page/arcs.js");
          const { showSmallMaps } = await import("/page/small_maps.js");
          const weights = Array.from({ length: 500 }, () => Array(500).fill(0));
          weights[3][4] = 0.5;
          const tokens = weights.map(() => ({ text: "a" }));
          const group = { name: "g", axes: ["r", "c"], lines: [{ name: "l" }] };
          const map = { group, row: 0, column: 0, name: "m" };
          map.weights = () => weights;
          const [small, large] = [0, 0].map(() => {
            const node = document.createElement("div");
            document.body.append(node);
            return node;
          });
          showSmallMaps(small, [map], map, () => {});
          drawArcs(large, { rows: tokens, columns: tokens, weights });
          const canvas = small.querySelector("canvas").getContext("2d");
          const { data } = canvas.getImageData(3, 3, 2, 1);
          return [large.textContent, data[3], data[7]];
        }"""
    )
    told = "The text is too long for lines: choose Map or Text."
    assert found == [told, 0, 255]


# A group of `encoder` whose layers have each the same single head.
GROUP = """async ({ size, numLayers }) => {
  const { groupOf } = await import("/page/groups.js");
  const { viewMaps } = await import("/page/map_viewer.js");
  const names = Array.from({ length: size }, (_, i) => `t${i}`);
  const head = names.map((_, i) =>
    names.map((_, j) => (j <= i ? 1 / (i + 1) : 0)));
  const group = groupOf({
    name: "encoder", layers: Array(numLayers).fill([head]),
    levels: ["layers", "heads"], axes: ["source", "source"],
    names: [names, names], encoder: null,
  });
  const node = document.createElement("div");
  document.body.append(node);
  viewMaps(node)([group]);
  return [group, node];
}"""


def test_a_rollout_leaves_the_page_answering(open_page):
    told, ticks, last = open_page("shout").evaluate(
        f"""async () => {{
          const [group, node] = await ({GROUP})({{ size: 400, numLayers: 3 }});
          node.querySelector("[title='encoder, rollout']").click();
          const told = node.querySelector(".map").textContent;
          let ticks = 0;
          while (!node.querySelector(".map details") && ticks < 2000) {{
            await new Promise((resolve) => setTimeout(resolve));
            ticks++;
          }}
          const rolled = group.lines.at(-1).maps[0].weights(Infinity);
          return [told, ticks, rolled[399]];
        }}"""
    )
    assert told == "The page computes this map."
    assert ticks > 3
    half = np.tril(np.ones((400, 400))) / np.arange(1, 401)[:, None]
    half = (half + np.eye(400)) / 2
    np.testing.assert_allclose(last, (half @ half @ half)[399], rtol=1e-9)


@pytest.mark.parametrize(
    ("size", "num_layers", "notes"),
    [
        (50, 6, []),
        (800, 1, []),
        (
            800,
            2,
            ["No rollout: 800 tokens in 2 layers are too many for a browser."],
        ),
    ],
)
def test_a_text_that_is_too_long_for_a_rollout_is_told(
    open_page, size, num_layers, notes
):
    options = f"{{ size: {size}, numLayers: {num_layers} }}"
    found = open_page("shout").evaluate(
        f"""async () => {{
          const [{{ lines }}, node] = await ({GROUP})({options});
          const notes = [...node.querySelectorAll(".group > .note")];
          return [lines.length, notes.map((note) => note.textContent)];
        }}"""
    )
    has_rollout = num_layers > 1 and not notes
    assert found == [num_layers + has_rollout, notes]


def test_whoever_points_at_a_row_of_a_large_map_chooses_its_table(open_page):
    found = open_page("shout").evaluate(
        """async () => {
          const { drawHeatMap } = await import("/page/heat_map.js");
          const tokens = Array.from({ length: 80 }, (_, i) => (
            { text: `t${i}` }));
          const weights = tokens.map((_, i) => tokens.map((_, j) =>
            (i === j ? 0.75 : 0.003)));
          const node = document.createElement("div");
          document.body.append(node);
          const { mark } = drawHeatMap(
            node, { rows: tokens, columns: tokens, weights });
          node.querySelector("details").open = true;
          mark(7);
          mark(null);
          const cells = [...node.querySelectorAll("td")].slice(6, 9);
          return [
            node.querySelector("caption").textContent,
            cells.map((cell) => cell.textContent),
          ];
        }"""
    )
    assert found == [
        f"Where {quoted('t7')} looked.",
        ["0.3 %", "75 %", "0.3 %"],
    ]


def test_a_table_says_that_rows_sum_to_one_only_where_they_do(open_page):
    found = open_page("shout").evaluate(
        """async () => {
          const { drawHeatMap } = await import("/page/heat_map.js");
          const tokens = [{ text: "a" }, { text: "b" }];
          return [
            [[0.25, 0.75], [1, 0]],
            [[0.2504, 0.75], [0.3333, 0.6667]],
            [[0.25, 0.75], [0.4, 0.3]],
            [[0, 0], [0.5, 0.5]],
            [[1, 1], [0.5, 0.5]],
          ].map((weights) => {
            const node = document.createElement("div");
            document.body.append(node);
            drawHeatMap(node, { rows: tokens, columns: tokens, weights });
            return node.querySelector("caption").textContent;
          });
        }"""
    )
    one, other = (
        f"Attention weights. {told} sum{verb} to 1."
        for told, verb in (("Each row", "s"), ("A row need not", ""))
    )
    assert found == [one, one, other, other, other]
