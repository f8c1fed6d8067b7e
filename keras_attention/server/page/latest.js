// Questions as somebody types: one a pause, and the last one's answer alone.

/**
 * A function of a question. It waits until no other question has come for
 * `pause` milliseconds. An earlier question is aborted, and its answer, should
 * it still come, is dropped.
 *
 * @param ask a function of an AbortSignal and the question to its answer
 * @param show a function of the answer and the question
 * @param fail a function of an error and the question
 * @param shown a node with the answer to an earlier question, which is pale
 *     while a new one is awaited
 */
export function latest(pause, ask, show, fail, shown = null) {
  let timer;
  let controller = new AbortController();
  const busy = (isBusy) => {
    if (shown) {
      shown.ariaBusy = `${isBusy}`;
    }
  };
  return (...question) => {
    busy(true);
    clearTimeout(timer);
    controller.abort();
    controller = new AbortController();
    const { signal } = controller;
    timer = setTimeout(async () => {
      try {
        const answer = await ask(signal, ...question);
        if (!signal.aborted) {
          busy(false);
          show(answer, ...question);
        }
      } catch (error) {
        if (!signal.aborted) {
          busy(false);
          fail(error, ...question);
        }
      }
    }, pause);
  };
}
