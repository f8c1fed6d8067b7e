// What the signature `inspect` answers, as the views show it.

import { groupOf } from "./groups.js";

const LAYERS = "layers"; // The first axis of a map, if it has four.
const TOKENS = "_tokens"; // How an output ends that names rows or columns.
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

/**
 * The maps among a signature's outputs.
 *
 * @param row name of an output -> its value
 * @param outputs name of an output -> the names of its axes
 */
export function groupsOf(row, outputs) {
  const isMap = (axes) =>
    axes[0] === LAYERS || (axes.length > 1 && axes.at(-1).endsWith(TOKENS));
  const names = Object.keys(outputs).filter(
    (name) => isMap(outputs[name]) && name in row,
  );
  return names.map((name) => {
    const levels = outputs[name].slice(0, -2);
    const axes = outputs[name].slice(-2);
    let layers = row[name];
    for (let missing = 2 - levels.length; missing; missing--) {
      layers = [layers];
    }
    return groupOf({
      name,
      layers,
      levels,
      axes: axes.map((axis) => axis.replace(TOKENS, "")),
      // A map may have the name of an axis, as "hops" has.
      names: axes.map((axis) => (axis.endsWith(TOKENS) ? row[axis] : null)),
      encoder: outputs.encoder?.at(-1) === axes[1] ? row.encoder : null,
    });
  });
}

/**
 * The first row of a signature's outputs, without what pads it to the longest.
 *
 * @param outputs name of an output -> its rows
 * @param axes name of an output -> the names of its axes
 */
export function firstRow(outputs, axes) {
  const lengthOf = (axis) => axis.endsWith(TOKENS) && outputs[axis]
    ? outputs[axis][0].findLastIndex((token) => token !== "") + 1
    : undefined;
  const cut = (value, lengths) => lengths.length
    ? value.slice(0, lengths[0]).map((one) => cut(one, lengths.slice(1)))
    : value;
  const names = Object.keys(axes).filter((name) => outputs[name]);
  return Object.fromEntries(names.map((name) =>
    [name, cut(outputs[name][0], axes[name].map(lengthOf))]));
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
