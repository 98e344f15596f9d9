// Decoding, token by token: a row for each cached key, with the position it is turned for, the
// score that the newest query should have with it, and the score it gets. Four modes: the right
// one, and three faults from public reports.
//
//   controls -> state -> compute(state) -> draw(view)
//
// Everything up to `compute` and the sentences is pure, so a test can hold it to NumPy's values.
// All words ask the same q and offer the same k: place makes the only difference.

import {
  MINUS, button, clamp, drawing, fact, frame, html, newPrefix, number, reading, select, set, slider,
  svg, voice,
} from "./_kit.js";

export const WORDS = ["Pour", "her", "some", "chocolate", "oat", "milk", "and", "stir"];
export const Q = [1, 0.5, -0.5, 2]; // what each word asks
export const K = [0.5, 1, 1.5, -1]; // what each word offers
export const BUDGET = 4; // earlier words that the evicting cache keeps
const NEWEST = { min: 0, max: WORDS.length - 1, step: 1 };
const EPSILON = 1e-9; // far above rounding at these sizes, far below a difference that shows

export const MODES = [
  ["right", "As it should be"],
  ["zero", "Query at position 0"],
  ["again", "Keys turned again each step"],
  ["evicted", "Evicted, rows counted"],
];

export const INITIAL = Object.freeze({ newest: 5, mode: "right" });

// ---------------------------------------------------------------------------------------- compute

/** The vector turned for a position: pair i, counted from zero, by position * 10000^(-2i/dim). */
export function turn(vector, position) {
  return vector.map((value, at) => {
    const pair = at - (at % 2);
    const angle = position * 10000 ** (-pair / vector.length);
    const [c, s] = [Math.cos(angle), Math.sin(angle)];
    return at % 2 ? vector[pair] * s + value * c : value * c - vector[pair + 1] * s;
  });
}

/** The score, without a division, of the query turned for m and the key turned for n. */
export function score(m, n) {
  const key = turn(K, n);
  return turn(Q, m).reduce((sum, value, at) => sum + value * key[at], 0);
}

/** The position that the mode's code gives to the query of token m. */
function queryPosition(mode, m) {
  if (mode === "zero") return 0;
  return mode === "evicted" ? Math.min(m, BUDGET) : m;
}

/** The position that the key of token n is turned for when token m asks. */
function keyPosition(mode, n, m) {
  if (mode === "again") return n * (m - n + 1); // once when stored, once more at each step since
  return mode === "evicted" ? Math.min(n, BUDGET) : n;
}

/** Everything the picture shows. Scores of a word that is not in the cache are null. */
export function compute({ newest, mode }) {
  const first = mode === "evicted" ? Math.max(0, newest - BUDGET) : 0;
  const query = queryPosition(mode, newest);
  const rows = WORDS.map((word, n) => {
    if (n > newest) return { word, state: "to come", turned: null, got: null, truth: null };
    if (n < first) return { word, state: "evicted", turned: null, got: null, truth: null };
    const turned = keyPosition(mode, n, newest);
    const [got, truth] = [score(query, turned), score(newest, n)];
    return { word, state: Math.abs(got - truth) < EPSILON ? "right" : "off", turned, got, truth };
  });
  const held = rows.filter(({ got }) => got !== null);
  return {
    rows,
    query,
    position: newest,
    held: held.length,
    off: held.filter(({ state }) => state === "off").length,
    largest: Math.max(...held.map(({ got, truth }) => Math.abs(got - truth))),
  };
}

// ------------------------------------------------------------------------------------------ words

/** What is so in this state, the cases in which a fault does not show included. */
export function relationText({ newest, mode }, view) {
  if (newest === 0) return "One token only: every position is 0, and no fault can show.";
  switch (mode) {
    case "right":
      return (
        `The query is turned for ${newest}, the number of tokens before it, ` +
        "and each key for its own position."
      );
    case "zero":
      return `The query is turned for 0 instead of ${newest}: each gap is ${newest} too small.`;
    case "again": {
      const n = newest - 1;
      return n === 0
        ? "The key at position 0 is turned by nothing, however often: the fault shows a word later."
        : `The key of “${WORDS[n]}” is turned for ${n} and once more: it stands at ${2 * n}.`;
    }
    default:
      if (newest < BUDGET) return "Nothing is evicted yet: the number of rows is the position.";
      if (newest === BUDGET) {
        return (
          `The cache is full: ${BUDGET} rows, position ${BUDGET}. ` +
          `The next word will not get ${BUDGET + 1}.`
        );
      }
      return (
        `${view.held - 1} rows are kept, so the query is turned for ${view.query} ` +
        `instead of ${newest}: the count has stopped.`
      );
  }
}

/** What the reader's last step or choice did. */
export function changeText(before, after) {
  const [old, now] = [compute(before), compute(after)];
  const scores = now.off === 1 ? "1 score is" : `${now.off} scores are`;
  const off = `${scores} off, by ${number(now.largest)} at most`;
  const tail = now.off === 0 ? "every score is right" : off;
  if (before.mode !== after.mode) return `The same tokens, other code: ${tail}.`;
  const step = after.newest - before.newest;
  if (step === 0) return "";
  const word = WORDS[after.newest];
  const moved = step > 0 ? `“${word}” came in` : `Back to “${word}”`;
  const evicted = ({ rows }) => rows.filter((row) => row.state === "evicted").length;
  const lost = evicted(now) - evicted(old);
  const went = lost === 1 ? "the oldest word went" : `${lost} words went`;
  const gone = lost > 0 ? `, and ${went}` : "";
  return `${moved}${gone}: ${tail}.`;
}

// ---------------------------------------------------------------------------------------- drawing

const ROW = 31;
const TOP = 42;
const PLACES = 140; // where the column of positions ends
const LEFT = 152; // where the scale of scores begins
const RIGHT = 332;
const SCALE = { min: -4.5, max: -1 };
const WIDTH = 340;
const HEIGHT = TOP + ROW * WORDS.length + 6;

const along = (value) => LEFT + ((value - SCALE.min) / (SCALE.max - SCALE.min)) * (RIGHT - LEFT);
const middle = (n) => TOP + ROW * (n + 0.5);

const heading = (text, x, anchor, y = 16) =>
  svg("text", { class: "small", x, y, "text-anchor": anchor }, text);

function scaleParts() {
  const marks = [-4, -3, -2].flatMap((value) => [
    svg("path", { class: "grid", d: `M ${along(value)} ${TOP} V ${HEIGHT - 6}` }),
    heading(`${MINUS}${-value}`, along(value), "middle", 36),
  ]);
  const titles = [
    heading("word", 2, "start"),
    heading("turned for", PLACES, "end"),
    heading("score with the newest query", (LEFT + RIGHT) / 2, "middle"),
  ];
  return svg("g", { "aria-hidden": "true" }, ...marks, ...titles);
}

function rowParts(word, n) {
  const y = middle(n);
  const name = svg("text", { x: 2, y: y + 5 }, word);
  const turned = svg("text", { x: PLACES, y: y + 5, "text-anchor": "end" });
  const gap = svg("path", { class: "line series-2" });
  const ring = svg("circle", { class: "line series-1", r: 8, cy: y });
  const dot = svg("circle", { class: "mark series-2", r: 4.5, cy: y });
  const group = svg("g", { "aria-hidden": "true" }, name, turned, gap, ring, dot);
  return { group, name, turned, gap, ring, dot };
}

function drawRow(parts, row, n, newest) {
  const held = row.got !== null;
  set(parts.name, { class: held ? "" : "small", "font-weight": n === newest ? "700" : "400" });
  set(parts.turned, { class: held ? (row.state === "off" ? "tone series-2" : "") : "small" });
  const away = row.turned === n ? "" : ` (is ${n})`;
  parts.turned.textContent = held ? `${row.turned}${away}` : row.state;
  for (const part of [parts.gap, parts.ring, parts.dot]) part.style.display = held ? "" : "none";
  if (!held) return;
  set(parts.ring, { cx: along(row.truth).toFixed(2) });
  set(parts.dot, { cx: along(row.got).toFixed(2) });
  const [from, to] = [row.truth, row.got].map((value) => along(value).toFixed(2));
  set(parts.gap, { d: `M ${from} ${middle(n)} H ${to}` });
}

/** Brings the page's nodes into line with one state and its view. */
export function draw(parts, state, view) {
  view.rows.forEach((row, n) => drawRow(parts.rows[n], row, n, state.newest));
  const label = view.rows
    .filter(({ got }) => got !== null)
    .map(({ word, turned, got, truth }) =>
      `${word}: turned for ${turned}, score ${number(got)}, should be ${number(truth)}`);
  set(parts.picture, { "aria-label": `${label.join("; ")}.` });
  parts.largest.show(view.largest, number(view.largest));
  parts.query.show(view.query);
  parts.position.show(view.position);
  parts.off.show(view.off, `${view.off} of ${view.held}`);
  parts.newest.show(state.newest, `${WORDS[state.newest]}, position ${state.newest}`);
  parts.mode.input.value = state.mode;
  parts.next.disabled = state.newest === NEWEST.max;
  parts.relation.textContent = relationText(state, view);
}

// ---------------------------------------------------------------------------------------- mounting

const HINT = "Let the words come in one by one. Then choose another way to count, and do it again.";

function build(prefix) {
  const rows = WORDS.map(rowParts);
  const picture = drawing(
    prefix,
    "Cached keys, the positions they are turned for, and their scores",
    [0, 0, WIDTH, HEIGHT],
    scaleParts(),
    svg("g", { role: "img" }, ...rows.map(({ group }) => group)),
  );
  const largest = reading("largest", "Largest error of a score");
  const query = fact("query", "Query turned for");
  const position = fact("position", "True position");
  const off = fact("off", "Scores off");
  const newest = slider(prefix, "newest", ["Newest word"], NEWEST);
  const mode = select(prefix, "mode", ["What the code does"], MODES);
  const [next, reset] = [button("next", "Next word"), button("reset", "Reset")];
  const [relation, change] = ["relation", "change"].map((role) => html("p", { "data-role": role }));
  const live = voice();
  const key = "Ring: the score it should be. Dot: the score it is.";
  const figure = frame("Interactive figure: decode word by word", {
    picture: [picture, html("p", { class: "key" }, key)],
    panel: [
      largest.row,
      html("dl", {}, query.row, position.row, off.row),
      mode.row,
      newest.row,
      html("div", { class: "buttons" }, next, reset),
    ],
    words: [relation, change],
    live: live.node,
  });
  const table = picture.querySelector("[role=img]");
  return {
    figure, picture: table, rows, largest, query, position, off, newest, mode, next, reset,
    relation, change, live,
  };
}

/** Puts the figure into `root`. `options.state` replaces parts of the initial state. */
export function mount(root, options = {}) {
  const initial = { ...INITIAL, ...options.state };
  const parts = build(newPrefix("kv_cache"));
  let state = initial;

  function show(next, words) {
    state = next;
    draw(parts, state, compute(state));
    parts.change.textContent = words;
  }
  function move(change) { // by the reader: only then is anything read out
    const next = { ...state, ...change };
    show(next, changeText(state, next) || HINT);
    parts.live.say(() => `${parts.relation.textContent} ${parts.change.textContent}`);
  }

  const { newest, mode } = parts;
  newest.input.addEventListener("input", () => move({ newest: Number(newest.input.value) }));
  mode.input.addEventListener("change", () => move({ mode: mode.input.value }));
  parts.next.addEventListener("click", () => move({ newest: clamp(state.newest + 1, NEWEST) }));
  parts.reset.addEventListener("click", () => {
    show(initial, HINT);
    parts.live.say(() => parts.relation.textContent);
  });

  show(state, HINT);
  root.replaceChildren(parts.figure);
}
