// What the signature `inspect` answers, as the page shows it.

const MAP = "layers"; // The first axis of a map.
// What rows and columns of a map are, in words.
const AXES = {
  source_tokens: "tokens of the text",
  pair_tokens: "tokens of the second text",
  input_tokens: "tokens that are read",
  target_tokens: "tokens that are written",
};
export const LACKING =
  "This model was exported before models could be looked into: export it " +
  "again to see every layer and head, other choices and the beam.";

/**
 * Asks what a model did inside.
 *
 * @param inputs of the signature: the text, and an answer or ""
 * @returns `text`, which was written, `source` and `tokens`, which were read
 *     and written, `numGiven`, how many of these are the prompt, for each
 *     token its probability and the best ones, `groups` of maps and the `tree`
 */
export async function inspect(model, inputs, signal) {
  const row = await model.ask("inspect", inputs, signal);
  const steps = row.best_tokens.map((tokens, step) =>
    tokens.map((token, place) => ({
      token,
      probability: Math.exp(row.best_log_probabilities[step][place]),
    })),
  );
  return {
    text: row.translation ?? row.continuation,
    source: row.source_tokens ?? [],
    tokens: row.target_tokens,
    numGiven: row.num_given ?? 0,
    probabilities: row.token_log_probabilities.map((value) => Math.exp(value)),
    best: steps,
    groups: groupsOf(row, model.kind.signatures.inspect.outputs),
    tree: treeOf(row),
  };
}

/** For each kind of map its lines: the layers, and the rollout. */
function groupsOf(row, outputs) {
  const names = Object.keys(outputs).filter(
    (name) => outputs[name][0] === MAP && name in row,
  );
  return names.map((name) => {
    const [, , rowAxis, columnAxis] = outputs[name];
    const layers = row[name];
    const lines = layers.map((heads, layer) => ({
      name: `layer ${layer + 1}`,
      // Experts have no heads.
      maps: columnAxis === "experts"
        ? [{ name: "", weights: heads[0] }]
        : mapsOf(heads),
    }));
    const rolled = rollout(name, row, outputs);
    if (rolled) {
      lines.push({ name: "rollout", maps: [{ name: "", weights: rolled }] });
    }
    return {
      name,
      lines,
      rows: row[rowAxis] ?? places(rowAxis, layers[0][0].length),
      columns: row[columnAxis] ?? places(columnAxis, layers[0][0][0].length),
      isAlignment: rowAxis === "target_tokens" && columnAxis === "source_tokens",
      axes: [rowAxis, columnAxis].map((axis) => AXES[axis] ?? axis),
    };
  });
}

function mapsOf(heads) {
  const maps = heads.map((weights, head) => ({
    name: `head ${head + 1}`,
    weights,
  }));
  return heads.length > 1
    ? [...maps, { name: "mean of the heads", weights: mean(heads) }]
    : maps;
}

/** Such as "slot 0" and "hop 1", where the rows are no tokens. */
function places(axis, count) {
  const word = axis.replace(/s$/, "");
  const first = axis === "hops" ? 1 : 0;
  return Array.from({ length: count }, (_, i) => `${word} ${first + i}`);
}

/**
 * Attention rollout (Abnar and Zuidema 2020, arXiv 2005.00928): how much of
 * each token below comes to a token above, if each layer passes on half of its
 * own input. Null for maps that no layers lie below.
 */
function rollout(name, row, outputs) {
  const layers = row[name];
  const [, , rowAxis, columnAxis] = outputs[name];
  if (columnAxis === "source_tokens" && rowAxis === "target_tokens") {
    const below = outputs.encoder?.[3] === columnAxis && row.encoder;
    return below ? product(mean(layers.at(-1)), rolled(below)) : null;
  }
  return ["encoder", "decoder"].includes(name) && layers.length > 1
    ? rolled(layers)
    : null;
}

function rolled(layers) {
  const halves = layers.map((heads) =>
    mean(heads).map((weights, i) =>
      weights.map((weight, j) => (weight + (i === j ? 1 : 0)) / 2),
    ),
  );
  return halves.reduce((below, half) => product(half, below));
}

export function mean(heads) {
  return heads[0].map((row, i) =>
    row.map((_, j) =>
      heads.reduce((sum, head) => sum + head[i][j], 0) / heads.length,
    ),
  );
}

function product(left, right) {
  return left.map((row) =>
    right[0].map((_, j) =>
      row.reduce((sum, weight, i) => sum + weight * right[i][j], 0),
    ),
  );
}

/** The beam: each node after its parent. */
function treeOf(row) {
  return (row.nodes ?? []).map((token, place) => ({
    token,
    parent: row.node_parents[place] < 0 ? null : row.node_parents[place],
    logProbability: row.node_log_probabilities[place],
    score: row.node_is_finished[place] ? row.node_scores[place] : null,
  }));
}
