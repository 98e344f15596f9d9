// Four words in a row and what attention gives each of them. Move the words: without a mask each
// word's output follows it unchanged; under a causal mask it does not.
//
//   controls -> state -> compute(state) -> draw(view)
//
// Everything up to `compute` and the sentences is pure, so a test can hold it to NumPy's values.
// Places count from 0; words and weights are those of the chapter.

import {
  button, checkbox, clamp, draggable, drawing, fact, frame, html, keyTarget, newPrefix, number,
  pointAt, reading, set, slider, svg, voice,
} from "./_kit.js";

const WORDS = ["some", "chocolate", "oat", "milk"]; // in the order that everything is compared with
const EMBEDDING = {
  some: [-1, 0.5, 0.5, 0],
  chocolate: [0.5, 1, -0.5, 0],
  oat: [0.5, 0, 1, -1],
  milk: [1, 0, 0.5, -1],
};
const W_Q = [[1, 0, 0, 1], [0, -0.5, 1, 0], [0, 1, 0, 1], [0, 0, 0.5, -0.5]];
const W_K = [[1, 0, 1, 0], [0, 0.5, 1, 0], [0, -1, 0, 2], [0.5, 0, 0, -1]];
const W_V = [[1, 0, 0.5], [0, 2, 0], [0, -1, 1], [1, 0, -1]];

const PLACE = { min: 0, max: WORDS.length - 1, step: 1 };
const EPSILON = 1e-9; // far above rounding at these sizes, far below any real change

export const INITIAL = Object.freeze({ order: Object.freeze([...WORDS]), causal: false });

// ---------------------------------------------------------------------------------------- compute

const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
const column = (matrix, j) => matrix.map((row) => row[j]);
const times = (row, matrix) => matrix[0].map((_, j) => dot(row, column(matrix, j)));

/** Shares (a row for each place that looks) and outputs (a row for each place). */
export function attend(order, causal) {
  const [q, k, v] = [W_Q, W_K, W_V].map((w) => order.map((word) => times(EMBEDDING[word], w)));
  const shares = q.map((query, i) => {
    const scores = k.map((key, j) =>
      causal && j > i ? -Infinity : dot(query, key) / Math.sqrt(query.length),
    );
    const largest = Math.max(...scores);
    const powers = scores.map((score) => Math.exp(score - largest));
    const sum = powers.reduce((a, b) => a + b, 0);
    return powers.map((power) => power / sum);
  });
  return { shares, outputs: shares.map((row) => times(row, v)) };
}

/** Everything the picture shows: outputs now and in the first order, by word, and the change. */
export function compute(state) {
  const { shares, outputs } = attend(state.order, state.causal);
  const first = attend(WORDS, state.causal).outputs;
  const words = {};
  for (const word of WORDS) {
    const place = state.order.indexOf(word);
    const [now, before] = [outputs[place], first[WORDS.indexOf(word)]];
    const change = Math.max(...now.map((value, i) => Math.abs(value - before[i])));
    words[word] = { place, now, before, change, changed: change > EPSILON };
  }
  return { shares, words, largest: Math.max(...WORDS.map((word) => words[word].change)) };
}

/** Takes a word out of the row and puts it in at a place; the words between make room. */
export function moveTo(state, word, place) {
  const order = state.order.filter((other) => other !== word);
  order.splice(clamp(Math.round(place), PLACE), 0, word);
  return { ...state, order };
}

// ------------------------------------------------------------------------------------------ words

const list = (words) =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;

/** One or two sentences on whose output is not what it was in the first order. */
export function relationText(state, view) {
  if (state.order.join() === WORDS.join()) {
    return "The words stand in the first order, so there is nothing to compare yet.";
  }
  if (!state.causal) {
    return "Everybody looks at everybody: each output followed its word, and none has changed.";
  }
  const changed = WORDS.filter((word) => view.words[word].changed);
  const same = WORDS.filter((word) => !view.words[word].changed);
  const rest = same.length
    ? ` Not of ${list(same)}, with the same words to the left as in the first order.`
    : "";
  return `Under the causal mask the output of ${list(changed)} has changed.${rest}`;
}

/** What the reader's last movement did. */
export function changeText(before, after, word) {
  const [from, to] = [before.order.indexOf(word), after.order.indexOf(word)];
  if (from === to) return "";
  return `${word} moved from place ${from} to ${to}: the row reads ${after.order.join(" ")}.`;
}

// -------------------------------------------------------------------------------------- drawing

const WIDE = 84; // drawing units per place
const ZERO = 168; // where the bars start
const UNIT = 38; // drawing units per unit of output
const CELL = 24; // of the table of shares
const MARGIN = 78; // for its words

const STYLE = `
.interactive .ob-word { transition: transform 180ms ease-out; }
.interactive svg .ob-tile { fill: var(--sheet); stroke: var(--tone); stroke-width: 1.5; }
.interactive .ob-word:hover .ob-tile { fill: color-mix(in srgb, var(--tone) 12%, var(--sheet)); }
.interactive .ob-word text { font-size: 14px; font-weight: 600; text-anchor: middle; }
.interactive svg .ob-first { stroke: var(--ink); stroke-dasharray: 4 3; }
.interactive svg .ob-hit { pointer-events: all; }
.interactive svg .ob-place { text-anchor: middle; }
.interactive .ob-table { max-width: 11.5rem; margin: 0.75rem auto 0; }
.interactive .ob-table text { text-anchor: end; }
.interactive svg .cell { stroke: var(--line); }
.interactive svg .cell.hidden { fill: none; stroke-dasharray: 2 3; }
.interactive .ob-sliders { display: grid; grid-template-columns: 1fr 1fr; gap: 0.3rem 1rem; }
.interactive .ob-sliders { align-items: end; }
@media (prefers-reduced-motion: reduce) { .interactive .ob-word { transition: none; } }
`;

const barBox = (value) => ({
  y: (ZERO - Math.max(value, 0) * UNIT).toFixed(2),
  height: (Math.abs(value) * UNIT).toFixed(2),
});

function wordParts(word) {
  const three = (kind) =>
    [-29, -9, 11].map((x) => svg("rect", { class: kind, x, width: 17 }));
  const [bars, first] = [three("mark ob-bar"), three("ob-first")];
  const group = svg(
    "g",
    {
      class: "ob-word",
      role: "slider",
      tabindex: "0",
      "data-word": word,
      "aria-label": `Word ${word}, place in the row`,
      "aria-valuemin": PLACE.min,
      "aria-valuemax": PLACE.max,
    },
    svg("rect", { class: "ob-hit", x: -41, y: 4, width: 82, height: 216 }),
    svg("rect", { class: "ob-tile", x: -39, y: 6, width: 78, height: 34, rx: 6 }),
    svg("text", { y: 28, "aria-hidden": "true" }, word),
    ...bars,
    ...first,
  );
  return { group, bars, first };
}

/** Brings the page's nodes into line with one state and its view. */
export function draw(parts, state, view) {
  for (const word of WORDS) {
    const { group, bars, first } = parts.words[word];
    const { place, now, before, changed } = view.words[word];
    group.style.transform = `translate(${(place + 0.5) * WIDE}px, 0)`;
    set(group, { class: `handle ob-word series-${changed ? 2 : 1}` });
    group.classList.toggle("dragged", parts.dragged === word);
    now.forEach((value, i) => set(bars[i], barBox(value)));
    before.forEach((value, i) => set(first[i], barBox(value)));
    set(group, {
      "aria-valuenow": place,
      "aria-valuetext": `place ${place}, output ${changed ? "changed" : "as in the first order"}`,
    });
    parts.sliders[word].show(place);
  }
  state.order.forEach((word, i) => {
    parts.rowNames[i].textContent = word;
    view.shares[i].forEach((share, j) => {
      const hidden = state.causal && j > i;
      parts.cells[i][j].style.setProperty("--share", share.toFixed(4));
      parts.cells[i][j].classList.toggle("hidden", hidden);
    });
  });
  parts.largest.show(view.largest, number(view.largest));
  parts.order.show(state.order.join(" "));
  parts.causal.input.checked = state.causal;
  parts.relation.textContent = relationText(state, view);
}

// ---------------------------------------------------------------------------------------- mounting

function build(prefix) {
  const words = Object.fromEntries(WORDS.map((word) => [word, wordParts(word)]));
  const places = WORDS.map((_, place) =>
    svg("text", { class: "small ob-place", x: (place + 0.5) * WIDE, y: 236 }, `place ${place}`),
  );
  const row = drawing(
    prefix,
    "Four words in a row, with the three output numbers of each",
    [0, 0, WIDE * WORDS.length, 240],
    svg("path", { class: "grid", d: `M 0 ${ZERO} H ${WIDE * WORDS.length}` }),
    ...WORDS.map((word) => words[word].group),
    ...places,
  );
  const cells = WORDS.map((_, i) =>
    WORDS.map((__, j) =>
      svg("rect", {
        class: "cell",
        x: MARGIN + j * CELL,
        y: i * CELL + 1,
        width: CELL - 2,
        height: CELL - 2,
      }),
    ),
  );
  const rowNames = WORDS.map((_, i) =>
    svg("text", { class: "small", x: MARGIN - 6, y: i * CELL + 16 }),
  );
  const table = svg(
    "svg",
    {
      class: "ob-table",
      viewBox: `0 0 ${MARGIN + CELL * WORDS.length} ${CELL * WORDS.length}`,
      "aria-hidden": "true",
    },
    ...rowNames,
    ...cells.flat(),
  );
  const sliders = Object.fromEntries(
    WORDS.map((word) => [word, slider(prefix, word, [`Place of ${word}`], PLACE)]),
  );
  const largest = reading("largest", "Largest change of an output number");
  const order = fact("order", "Order");
  const causal = checkbox(prefix, "causal", ["Causal mask"]);
  const reverse = button("reverse", "Reverse");
  const reset = button("reset", "Reset");
  causal.row.append(reverse, reset);
  const [relation, change] = ["relation", "change"].map((role) =>
    html("p", { "data-role": role }),
  );
  const speech = voice();
  const whole = frame("Interactive figure: reorder four words", {
    picture: [
      html("style", {}, STYLE),
      row,
      html("p", { class: "key" }, "Bars: output now. Dashed: output in the first order."),
      table,
      html("p", { class: "key" }, "Shares: a row for each word that looks, full colour is 1."),
    ],
    panel: [
      largest.row,
      html("dl", {}, order.row),
      causal.row,
      html("div", { class: "ob-sliders" }, ...WORDS.map((word) => sliders[word].row)),
    ],
    words: [relation, change],
    live: speech.node,
  });
  return {
    whole, row, words, sliders, cells, rowNames, largest, order,
    causal, reverse, reset, relation, change, speech, dragged: null,
  };
}

const HINT = "Drag a word, use its arrow keys, or move a slider. Then switch on the causal mask.";

/** Puts the figure into `root`. `options.state` replaces parts of the initial state. */
export function mount(root, options = {}) {
  const initial = { ...INITIAL, ...options.state };
  const parts = build(newPrefix("order_blindness"));
  let state = initial;
  let gesture = { word: null, before: state }; // what the sentence on the last movement compares

  function show(next, words) {
    state = next;
    draw(parts, state, compute(state));
    parts.change.textContent = words;
  }

  function move(next, words) { // by the reader: only then is anything read out
    show(next, words);
    parts.speech.say(() => {
      const { largest, relation, change } = parts;
      const told = `${relation.textContent} ${change.textContent}`;
      return `Largest change ${largest.output.textContent}. ${told}`;
    });
  }

  function begin(word, fresh = false) {
    if (fresh || gesture.word !== word) gesture = { word, before: state };
  }

  function place(word, to) {
    begin(word);
    const next = moveTo(state, word, to);
    move(next, changeText(gesture.before, next, word) || HINT);
  }

  for (const word of WORDS) {
    const { group } = parts.words[word];
    draggable(group, {
      start: () => {
        parts.dragged = word;
        begin(word, true);
      },
      move: (event) => {
        const to = clamp(Math.floor(pointAt(parts.row, event)[0] / WIDE), PLACE);
        if (to !== state.order.indexOf(word)) place(word, to);
      },
      end: () => {
        parts.dragged = null;
      },
    });
    group.addEventListener("keydown", (event) => {
      const to = keyTarget(event, state.order.indexOf(word), PLACE);
      if (to !== undefined) place(word, to);
    });
    const { input } = parts.sliders[word];
    input.addEventListener("pointerdown", () => begin(word, true));
    input.addEventListener("input", () => place(word, Number(input.value)));
  }

  parts.causal.input.addEventListener("change", () => {
    const causal = parts.causal.input.checked;
    const words = causal
      ? "Causal mask on: a word looks at itself and to its left."
      : "Causal mask off: everybody looks at everybody.";
    begin(null, true);
    move({ ...state, causal }, words);
  });

  parts.reverse.addEventListener("click", () => {
    const order = [...state.order].reverse();
    begin(null, true);
    move({ ...state, order }, `Reversed: the row reads ${order.join(" ")}.`);
  });

  parts.reset.addEventListener("click", () => {
    begin(null, true);
    move(initial, HINT);
  });

  show(state, HINT);
  root.replaceChildren(parts.whole);
}
